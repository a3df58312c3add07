"""``Tracer``: the ``t`` of a traced function. It makes inputs, moments and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from tpcalc.dsl.arrays import Arrays
from tpcalc.dsl.elementwise import Coordinatewise, formula_of
from tpcalc.dsl.handles import Scalar, axes_of
from tpcalc.dsl.matrices import Matrix, covariance_of, independent, mean_of
from tpcalc.dsl.operands import (
    Operand,
    as_rational,
    instead,
    misuse,
    no_attribute,
    noun,
    number,
    number_or_none,
    user_line,
)
from tpcalc.dsl.powers import L, Layer, Power
from tpcalc.dsl.vectors import Vector, common_dim, nonlin, outer
from tpcalc.errors import UnknownName
from tpcalc.functions import Fn, Var
from tpcalc.functions.fn import FIRST
from tpcalc.program.along import FRESH
from tpcalc.program.laws import LAWS
from tpcalc.program.nodes import Carry, Data, Dim, Family, Input, Kind, Moment, Repeat


class Tracer(Arrays):
    """Makes the inputs and outputs of one program, and what operators cannot write.

    ``t[name]`` is the vector or scalar that was output under that name.

    Args:
        recorder: Where the nodes go.

    Example:
        >>> from tpcalc.dsl.trace import program
        >>> @program
        ... def start(t):
        ...     x, y = t.gaussians(["x", "y"], cov=[[2, 1], [1, 2]])
        ...     t.output("E[xy]", t.inner(x, y))
        >>> start.groups[0].cov[0]
        (Fraction(2, 1), Fraction(1, 1))
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            known = [word for word in dir(type(self)) if not word.startswith("_")]
            told = None if get_close_matches(name, known, 1, 0.7) else Operand.others.format(name)
            raise no_attribute("a tracer", name, known, instead(name) or told)

    # --------------------------------------------------------------------------------- inputs

    def dim(self, name: str, ratio: int | Fraction | float | str = 1) -> str:
        """Declare a dimension class, one that goes to infinity as ``ratio * n``.

        Args:
            name: Its name.
            ratio: A positive exact number; a float is taken as the decimal that it prints as.

        Returns:
            The name, for ``dim=``, ``rows=`` and ``cols=``.

        Raises:
            TraceError: The ratio is not positive, or the name has another ratio already.
        """
        if not isinstance(name, str) or not name.isidentifier():
            raise misuse(
                f"a dimension class cannot be called {name!r}.", "Use a Python identifier."
            )
        exact = as_rational(ratio, f"the ratio of {name!r}")
        if exact <= 0:
            raise misuse(f"the ratio of dimension class {name!r} must be positive, not {exact}.")
        self._recorder.declare_dim(Dim(name, exact))
        return name

    def gaussian(
        self,
        name: str,
        dim: str | None = None,
        mean: int | Fraction | float = 0,
        var: int | Fraction | float = 1,
        axes: Mapping[str, int] | None = None,
    ) -> Vector:
        """A start vector with coordinates iid N(mean, var); with axes a block of independent ones.

        Args:
            name: Its name.
            dim: Its dimension class; ``n`` if not given.
            mean: The mean of a coordinate.
            var: The variance of a coordinate.
            axes: Finite axes with their sizes, ``{"in": 3}``.

        Raises:
            TraceError: The name is taken, or a number is not usable.
            UnknownName: The dimension class is not declared.
        """
        finite = axes_of(axes, name)
        variance = number(var, f"the variance of {name!r}")
        if variance < 0:
            raise misuse(f"the variance of {name!r} is {variance}, which is negative.")
        if finite:
            where, taken = self._recorder.dim_name(dim), self._recorder.claim("vector", name)
            center = number(mean, f"the mean of {name!r}")
            family = independent(taken, where, center, variance, finite)
            block = Input(replace(family, along=self._recorder.along))
            return Vector(self._recorder, where, self._recorder.add(block))
        cov = None if variance == 1 else [[variance]]
        return self.gaussians([name], [mean], cov, dim)[0]

    def gaussians(
        self, names: Sequence[str], mean: Any = None, cov: Any = None, dim: str | None = None
    ) -> list[Vector]:
        """Start vectors that are jointly Gaussian, coordinate by coordinate.

        Args:
            names: Their names.
            mean: One number for each; 0 if not given.
            cov: The covariance between them, rows or an array; singular ones are fine, and what
                rounding put below 0 (the rounding of single precision where all entries are of it)
                counts as 0, which answers note. The identity if not given.
            dim: Their dimension class; ``n`` if not given.

        Returns:
            One vector for each name.

        Raises:
            TraceError: A name is taken, or the covariance is none.
            UnknownName: The dimension class is not declared.
        """
        if isinstance(names, str) or not isinstance(names, Sequence):
            raise misuse(
                f"the names of jointly Gaussian vectors are a list, not {noun(names)}.",
                "For one vector use t.gaussian.",
            )
        where = self._recorder.dim_name(dim)
        taken = [self._recorder.claim("vector", name) for name in names]
        if not taken:
            return []
        title = taken[0]
        if len(taken) > 1:
            title = self._recorder.claim("group of vectors", f"{taken[0]}..{taken[-1]}")
        group = Family.group(title, where, mean_of(mean, taken), *covariance_of(cov, taken))
        refs = self._recorder.group(replace(group, along=self._recorder.along), taken)
        return [Vector(self._recorder, where, ref) for ref in refs]

    def matrix(
        self,
        name: str,
        rows: str | None = None,
        cols: str | None = None,
        law: str = "gaussian",
        axes: Mapping[str, int] | None = None,
        along: str = "",
    ) -> Matrix:
        """A random matrix with entries of variance 1; powers of n are written outside it.

        Args:
            name: Its name.
            rows: The dimension class of W @ x; ``n`` if not given.
            cols: The dimension class of x; ``n`` if not given.
            law: The law of its entries, of mean square 1: ``"gaussian"``, ``"orthogonal"`` (Haar),
                ``"uniform"``, ``"rademacher"``, ``"laplace"``.
            axes: Finite axes with their sizes, for a block of independent matrices.
            along: In a block that is repeated L times how it depends on itself along the depth, by
                default not at all: ``"fgn(3/4)"``, ``"rbf(1/10)"``, ``"rbf_increments(1/10)"``,
                ``"given(1, 1/2)"`` (an autocovariance).

        Raises:
            TraceError: The name is taken, or there is no such law.
            UnknownName: A dimension class is not declared.
        """
        if law not in LAWS:
            raise misuse(f"the law of a matrix is {law!r}.", f"Laws: {', '.join(LAWS)}.")
        dims = (self._recorder.dim_name(rows), self._recorder.dim_name(cols))
        taken = self._recorder.claim("matrix", name)
        depth = self._recorder.law_along(along)
        family = Family(taken, dims, axes_of(axes, taken), law, along=depth)
        ref = self._recorder.add(Input(family))
        return Matrix(self._recorder, ref, taken, dims)

    def scalar(self, name: str, value: int | Fraction | float) -> Scalar:
        """A given number, such as a learning rate.

        Args:
            name: Its name.
            value: Its value.

        Raises:
            TraceError: The name is taken, or the value is no finite number.
        """
        return self._scalar(name, value, 0)

    def random_scalar(
        self, name: str, mean: int | Fraction | float = 0, std: int | Fraction | float = 1
    ) -> Scalar:
        """A Gaussian number N(mean, std^2), independent of all else, drawn once.

        Args:
            name: Its name.
            mean: Its mean.
            std: Its standard deviation.

        Raises:
            TraceError: The name is taken, or a number is not usable.
        """
        return self._scalar(name, mean, std)

    def _scalar(self, name: str, value: object, std: object) -> Scalar:
        mean = number(value, f"the value of {name!r}")
        spread = number(std, f"the standard deviation of {name!r}")
        if spread < 0:
            raise misuse(f"the standard deviation of {name!r} is {spread}, which is negative.")
        taken = self._recorder.claim("scalar", name)
        ref = self._recorder.add(
            Input(replace(Family.scalar(taken, mean, spread), along=self._recorder.along))
            if spread
            else Data(taken, (mean,))
        )
        return Scalar(self._recorder, ref)

    # ------------------------------------------------------------------------- functions, means

    def nonlin(
        self, fn: Coordinatewise, *vectors: Vector, scalars: Sequence[Scalar] = ()
    ) -> Vector:
        """A coordinatewise function of several vectors and scalars, as one step.

        Args:
            fn: An activation, or a Python function of the vectors and then the scalars, written
                with operators and activations: ``lambda x, y, s: tp.tanh(x) * y + s``.
            vectors: Its vector arguments.
            scalars: Its scalar arguments.

        Raises:
            DimMismatch: The vectors live on different dimension classes.
            TraceError: The function is not a formula of its arguments.
        """
        self._vectors(vectors, "t.nonlin")
        self._scalars(scalars, "t.nonlin")
        return nonlin(formula_of(fn, len(vectors), len(scalars)), vectors, scalars)

    def moment(
        self, fn: Coordinatewise | Vector, *vectors: Vector, scalars: Sequence[Scalar] = ()
    ) -> Scalar:
        """The average over the coordinates of a function of vectors, or of a vector.

        Args:
            fn: As for ``nonlin``; or a vector, given alone.
            vectors: Its vector arguments.
            scalars: Its scalar arguments.

        Raises:
            DimMismatch: The vectors live on different dimension classes.
            TraceError: The function is not a formula of its arguments.
        """
        if isinstance(fn, Vector):
            if vectors or scalars:
                raise misuse(
                    "t.moment takes a function and its vectors, or one vector alone.",
                    "The average of a product is t.inner(x, y) or t.moment(x * y).",
                )
            return self.mean(fn)
        self._vectors(vectors, "t.moment")
        self._scalars(scalars, "t.moment")
        common_dim(vectors, scalars)
        node = Moment(
            formula_of(fn, len(vectors), len(scalars)),
            tuple(vector.ref for vector in vectors),
            tuple(scalar.ref for scalar in scalars),
        )
        return Scalar(self._recorder, self._recorder.add(node))

    def mean(self, vector: Vector) -> Scalar:
        """The average of the coordinates.

        Args:
            vector: The vector.
        """
        return self.moment(FIRST, vector)

    def inner(self, x: Vector, y: Vector) -> Scalar:
        """The average of x*y over the coordinates: x.T @ y divided by the dimension.

        Args:
            x: A vector.
            y: A vector on the same dimension class.

        Raises:
            DimMismatch: They live on different dimension classes.
        """
        self._vectors((x, y), "t.inner")
        common_dim((x, y))
        if x.ref == y.ref:
            return self.moment(Fn(Var(0) ** 2, 1), x)
        return self.moment(Fn(Var(0) * Var(1), 2), x, y)

    def outer(
        self,
        fn: Coordinatewise,
        rows: Vector | Sequence[Vector],
        cols: Vector | Sequence[Vector],
        x: Vector,
        scalars: Sequence[Scalar] = (),
    ) -> Vector:
        """A matrix with entries fn(rows_a; cols_b; scalars) / dimension, applied to a vector.

        Entrywise optimizers (Adam, sign) make such updates. What of the function is a sum of
        products of rows and of columns is written with averages, which need no matrix.

        Args:
            fn: A function of the row vectors, then the column vectors, then the scalars.
            rows: One or several vectors on one dimension class, that of the result.
            cols: One or several vectors on the dimension class of ``x``.
            x: The vector that the matrix is applied to.
            scalars: The scalar arguments of ``fn``.

        Raises:
            DimMismatch: The column vectors and ``x`` live on different dimension classes.
            TraceError: The function is not a formula of its arguments.
        """
        left = [rows] if isinstance(rows, Vector) else list(rows)
        right = [cols] if isinstance(cols, Vector) else list(cols)
        self._vectors([*left, *right, x], "t.outer")
        self._scalars(scalars, "t.outer")
        if not left:
            raise misuse("t.outer needs at least one row vector, to know the dimension.")
        return outer(formula_of(fn, len(left) + len(right), len(scalars)), left, right, x, scalars)

    # ---------------------------------------------------------------------------------- depth

    def repeat(
        self, depth: int | str | Power, x: Vector, block: Callable[[Any, Vector], Vector]
    ) -> Vector:
        """A block that is repeated along the depth, x^l = block(l, x^(l-1)) from x^0 = x.

        What the block draws is drawn anew in every repetition; what is drawn outside is one for
        all of them. With a number the repetitions are written one after the other.

        Args:
            depth: How often: a number, or ``"L"`` (``tp.L``) for the symbol.
            x: What enters the first repetition.
            block: Computes a repetition of its number l and of what enters it. Of the symbol l is
                a word for names: ``f"W{l + 1}"``.

        Returns:
            What leaves the last one.

        Raises:
            TraceError: The depth is neither, or the block returns no vector of the dimension of x.

        Example:
            >>> import tpcalc as tp
            >>> @tp.program
            ... def deep(t):
            ...     def block(l, x):
            ...         return x + tp.L**"-1/2" * tp.n**"-1/2" * (t.matrix(f"W{l}") @ x)
            ...     t.output("q", t.moment(t.repeat("L", t.gaussian("x"), block) ** 2))
            >>> [round(tp.limit(tp.at_depth(deep, L))["q"].value, 6) for L in (1, 4)]
            [2.0, 2.441406]
        """
        self._vectors((x,), "t.repeat")
        if isinstance(depth, int) and not isinstance(depth, bool):
            if depth < 1:
                raise misuse(f"a block is repeated {depth} times.", "It is repeated once or more.")
            for number in range(1, depth + 1):
                x = self._next(x, block(number, x))
            return x
        if depth != "L" and not (isinstance(depth, Power) and str(depth) == str(L)):
            raise misuse(f"a block is repeated {depth!r} times.", "A number, or 'L'.")
        if self._recorder.along:
            raise misuse(
                "a block is repeated inside of a repeated block.",
                "Give the inner one a number of repetitions.",
            )
        carry = Vector(self._recorder, x.dim, self._recorder.add(Carry(x.ref)))
        self._recorder.along = FRESH
        try:
            found = self._next(carry, block(Layer(), carry))
            ref = found.ref  # a sum is recorded inside of the block
        finally:
            self._recorder.along = ""
        return Vector(self._recorder, x.dim, self._recorder.add(Repeat(carry.ref, ref)))

    def _next(self, x: Vector, found: object) -> Vector:
        """What a block returned.

        Raises:
            TraceError: It is no vector of the dimension of what entered.
        """
        if isinstance(found, Vector) and found.dim == x.dim:
            return found
        place = f" on {found.dim!r}" if isinstance(found, Vector) else ""
        raise misuse(
            f"a repeated block takes a vector on {x.dim!r} and returns {noun(found)}{place}.",
            "A repeated block keeps the dimension of what it carries.",
        )

    def output(self, name: str, value: Vector | Scalar) -> None:
        """Name a result.

        Args:
            name: Its name.
            value: A vector or scalar of this program.

        Raises:
            TraceError: The name is taken, or the value is none.
        """
        if not isinstance(value, Vector | Scalar):
            hint = "An output is a vector or a scalar."
            if isinstance(value, Matrix):
                hint = "Apply the matrix to a vector and name the product."
            elif isinstance(value, list | tuple):
                hint = "Name each entry: t.output('h[0]', h[0])."
            raise misuse(f"the output {name!r} is {noun(value)}.", hint)
        value.belongs(self._recorder)
        self._recorder.builder.output(self._recorder.claim("output", name), value.ref)

    def __getitem__(self, name: str) -> Vector | Scalar:
        recorder = self._recorder
        if name not in recorder.builder.outputs:
            raise UnknownName("output", str(name), recorder.builder.outputs, where=user_line())
        ref = recorder.builder.outputs[name]
        found = recorder.builder.type(ref)
        if found.kind is Kind.SCALAR:
            return Scalar(recorder, ref)
        return Vector(recorder, found.width[0], ref)

    # ---------------------------------------------------------------------------------- checks

    def _vectors(self, handles: Sequence[object], what: str) -> None:
        if not handles:
            raise misuse(
                f"{what} needs at least one vector.", "Functions of scalars: tp.tanh(s), s*s, ..."
            )
        for handle in handles:
            if not isinstance(handle, Vector):
                hint = "Scalars go into scalars=[...]." if isinstance(handle, Scalar) else None
                raise misuse(f"{what} takes vectors, not {noun(handle)}.", hint)
            handle.belongs(self._recorder)

    def _scalars(self, handles: Sequence[object], what: str) -> None:
        if isinstance(handles, Operand) or not isinstance(handles, Sequence):
            raise misuse(f"the scalars= of {what} are a list, not {noun(handles)}.")
        for handle in handles:
            if not isinstance(handle, Scalar):
                hint = None
                if number_or_none(handle) is not None:
                    hint = "Write numbers into the function, or name one: t.scalar('c', 0.5)."
                raise misuse(f"the scalars= of {what} hold {noun(handle)}.", hint)
            handle.belongs(self._recorder)


def mean(vector: Vector) -> Scalar:
    """The average of the coordinates of a vector.

    Args:
        vector: A vector of a program.

    Returns:
        A scalar; of a block of vectors one for each cell.

    Raises:
        TraceError: It is something else.

    Example:
        >>> from tpcalc.dsl.trace import program
        >>> @program
        ... def second_moment(t):
        ...     x = t.gaussian("x")
        ...     t.output("E[x^2]", mean(x * x))
        >>> [type(node).__name__ for node in second_moment.nodes]
        ['Input', 'Nonlin', 'Moment']
    """
    if not isinstance(vector, Vector):
        raise misuse(
            f"the mean of {noun(vector)}: a vector of a program is needed.",
            "Functions of vectors are vectors: tp.mean(x * y), tp.mean(tp.relu(x)).",
        )
    return Tracer(vector.recorder).mean(vector)

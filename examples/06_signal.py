"""How deep does a signal reach? Phase, depth scale and nonlinearity of networks at the start."""

import tpcalc as tp

s = tp.signal


def main(depth: int = 50, rank: float = 0.25) -> None:
    for weights in (1.2, 1.7, 2.5):
        layer = s.LayerMap("tanh", weights, 0.05)
        reach = layer.correlation_scale.layers
        print(f"tanh, weights {weights}: {layer.phase}, depth scale of correlations {reach:.0f}")

    # Weights of low rank start alike once both variances are divided by the rank, but the
    # singular values of their Jacobian spread more.
    low = s.LayerMap("tanh", *s.maps.low_rank_start(1.7, 0.05, rank), rank=rank)
    for family in ("gaussian", "orthogonal"):
        spread = s.spectra.singular_values(low, family, depth).relative_variance.value
        print(f"{family}, rank {rank}: chi {low.chi.value:.3f}, relative variance {spread:.1f}")

    for norm in ("none", "layer"):
        graph = s.resnet(depth, s.Design("relu", 2, norm=norm))
        print(f"resnet of {depth} blocks, norm {norm}: NLC {s.nlc(graph).value:.2f}")


if __name__ == "__main__":
    main()

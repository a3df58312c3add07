"""Records as pages, Markdown, notebook tables, terminal tables and pictures."""

from tpcalc.views.notebook import check_html as check_html
from tpcalc.views.notebook import comparison_html as comparison_html
from tpcalc.views.notebook import finite_html as finite_html
from tpcalc.views.notebook import kernel_html as kernel_html
from tpcalc.views.notebook import limit_html as limit_html
from tpcalc.views.notebook import orders_html as orders_html
from tpcalc.views.notebook import phases_html as phases_html
from tpcalc.views.notebook import solution_html as solution_html
from tpcalc.views.page import render_html as render_html
from tpcalc.views.page import render_markdown as render_markdown
from tpcalc.views.page import write as write
from tpcalc.views.phase_plot import phase_svg as phase_svg
from tpcalc.views.record import ReportInput as ReportInput

"""Records as pages, Markdown, notebook tables and terminal tables."""

from tpcalc.report.notebook import comparison_html as comparison_html
from tpcalc.report.notebook import finite_html as finite_html
from tpcalc.report.notebook import limit_html as limit_html
from tpcalc.report.page import render_html as render_html
from tpcalc.report.page import render_markdown as render_markdown
from tpcalc.report.page import write as write
from tpcalc.report.record import ReportInput as ReportInput

"""Records as pages, Markdown, notebook tables, terminal tables and pictures."""

from tpcalc.views.answers.phases import phase_svg as phase_svg
from tpcalc.views.page import render_html as render_html
from tpcalc.views.page import render_markdown as render_markdown
from tpcalc.views.page import write as write
from tpcalc.views.record import ReportInput as ReportInput

"""The chart in README.md shows the figures of bench/RESULTS.md."""

import subprocess
import sys

from windrow_server import ROOT


def test_the_chart_is_drawn_from_the_published_figures():
    subprocess.run([sys.executable, ROOT / "bench" / "chart.py", "--check"], check=True)

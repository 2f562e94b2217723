"""Chromium without a window: what it makes of a page, and what it complains about."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHROMIUM = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
FLAGS = [
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--virtual-time-budget=5000",
]  # fmt: skip
MEASURE = """
<script>
addEventListener("load", () => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  const wide = innerWidth, beyond = [];
  for (const one of document.body.querySelectorAll("*")) {
    if (one.closest("pre, .skip") || one.parentElement.closest(".wide")) continue;
    const box = one.getBoundingClientRect();
    if (box.width && (box.right > wide + 0.5 || box.left < -0.5)) beyond.push(one.outerHTML.slice(0, 120));
  }
  for (const one of document.querySelectorAll("svg text")) {
    const box = one.getBoundingClientRect(), frame = one.ownerSVGElement.getBoundingClientRect();
    if (box.left < frame.left - 1 || box.right > frame.right + 1) beyond.push(one.outerHTML);
  }
  const over = [];
  for (const drawn of document.querySelectorAll("svg")) {
    const texts = [...drawn.querySelectorAll("text")].map((one) => [one, one.getBoundingClientRect()]);
    for (const [at, [one, a]] of texts.entries())
      for (const [other, b] of texts.slice(at + 1))
        if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
          over.push(one.textContent + " | " + other.textContent);
  }
  const style = getComputedStyle(document.body);
  const told = {
    wide, scroll: document.documentElement.scrollWidth, beyond, over, broken: typeof window.broken,
    paper: style.backgroundColor, ink: style.color, rules: document.styleSheets[0].cssRules.length,
    pictures: [...document.querySelectorAll(".picture")].map((one) => {
      const box = one.getBoundingClientRect();
      return [box.width, box.height, getComputedStyle(one).backgroundImage.slice(0, 26)];
    }),
  };
  parent.postMessage(JSON.stringify(told), "*");
});
</script>
"""
FRAME = """<!DOCTYPE html><html><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<style>body {{ margin: 0 }} iframe {{ border: 0 }}</style></head><body>
<script>
addEventListener("message", (event) => {{
  const made = document.createElement("script");
  made.type = "application/json"; made.className = "measured";
  made.textContent = event.data.replaceAll("<", "\\u003c");
  document.body.append(made);
}});
</script>
{frames}</body></html>
"""
"""A window has a least width, a frame has none."""


@dataclass(frozen=True)
class Seen:
    """The document as the browser has it, and what it wrote to its console."""

    document: str
    console: list[str]


def open_page(path: Path, dark: bool = False) -> Seen:
    """Open a file, let it settle, and take the document."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(prefix="chromium-") as profile:
        scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        alone = ["--no-sandbox"] if os.geteuid() == 0 else []
        where = [
            f"--user-data-dir={profile}",
            "--window-size=1400,900",
            scheme,
            "--dump-dom",
            path.as_uri(),
        ]
        done = subprocess.run(
            [CHROMIUM, *FLAGS, *alone, *where], capture_output=True, timeout=120, check=True
        )
    told = re.findall(r":CONSOLE[:(].*", done.stderr.decode("utf-8", "replace"))
    return Seen(done.stdout.decode("utf-8"), told)


def measure(
    page: Path, folder: Path, widths: Sequence[int], dark: bool = False
) -> tuple[dict[int, dict[str, Any]], list[str]]:
    """Sizes of all that is on a page by its width, from a copy in `folder` that measures itself in a frame of
    each width."""
    copy, frame = folder / "copy.html", folder / "frame.html"
    copy.write_text(page.read_text("utf-8").replace("</body>", MEASURE + "</body>"), "utf-8")
    frames = "".join(f'<iframe src="{copy.name}" width="{width}" height="900"></iframe>' for width in widths)
    frame.write_text(FRAME.format(frames=frames), "utf-8")
    seen = open_page(frame, dark)
    pattern = r'<script type="application/json" class="measured">(.*?)</script>'
    found = [json.loads(text) for text in re.findall(pattern, seen.document, re.DOTALL)]
    assert len(found) == len(widths), seen.document[-300:]
    return {sizes["wide"]: sizes for sizes in found}, seen.console

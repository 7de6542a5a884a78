"""Renders candor.svg to the sizes that the desktop packages want.

Needs Chromium and ImageMagick's `convert` on the path. The results are committed, so that no build
needs either.
"""

import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
LARGEST = 512
SIZES = {"512.png": 512, "128@2x.png": 256, "128.png": 128, "32.png": 32}


def render_largest(target: pathlib.Path) -> None:
    """Chromium refuses windows as small as an icon, so it draws the largest one only."""
    svg = (HERE / "candor.svg").read_text(encoding="utf-8")
    style = f"html,body{{margin:0;background:transparent}}svg{{display:block;width:{LARGEST}px}}"
    with tempfile.TemporaryDirectory() as scratch:
        html = pathlib.Path(scratch, "icon.html")
        html.write_text(f"<!doctype html><style>{style}</style>{svg}", encoding="utf-8")
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--default-background-color=00000000",
            f"--user-data-dir={scratch}/profile",
            f"--window-size={LARGEST},{LARGEST}",
            f"--screenshot={target}",
        ]
        command = ["chromium", *options, html.as_uri()]
        subprocess.run(command, check=True, capture_output=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        largest = pathlib.Path(scratch, "largest.png")
        render_largest(largest)
        for name, size in SIZES.items():
            # PNG32 keeps the transparency of the corners also where a palette would do.
            scale = ["convert", str(largest), "-resize", f"{size}x{size}", "-strip"]
            subprocess.run([*scale, f"PNG32:{HERE / name}"], check=True)


if __name__ == "__main__":
    main()

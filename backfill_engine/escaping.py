"""Text that comes from data or people, made harmless for the medium that shows it.

A name of a file, a value, a reason or an error's text may hold markup, links or codes that move a
terminal's cursor. One function a medium; in HTML it is `html.escape`, in `extras/pages`.
"""

import re
import unicodedata

_HIDDEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
_MARKUP = re.compile(r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])")
_LINKED = re.compile(r"://|@|(?<=www)\.", re.IGNORECASE)
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_BACKTICKS = re.compile("`+")


def escape_hidden(text: str, *, keep: str = "\n\t") -> str:
    """Writes what isn't shown, or changes how the rest is, as Python would.

    Args:
        text: any.
        keep: what stays as it is.
    """
    if text.isprintable():
        return text
    return "".join(
        repr(character)[1:-1]
        if character not in keep and unicodedata.category(character) in _HIDDEN
        else character
        for character in text
    )


class Markdown(str):
    """Markdown that is as it is meant to be; any other text is escaped on its way into a page."""


def escape_markdown(text: object) -> Markdown:
    """Escapes text for a line of Markdown: nothing in it is markup, a link, HTML or a new line."""
    if isinstance(text, Markdown):
        return text
    line = escape_hidden(" ".join(str(text).splitlines()), keep="")
    line = _MARKUP.sub(r"\\\g<0>", line.translate(_ENTITIES))
    return Markdown(
        _LINKED.sub(lambda found: "".join(f"&#{ord(each)};" for each in found.group()), line)
    )


def write_code(text: object) -> Markdown:
    """Writes text as code in a line of Markdown, also in a cell of a table."""
    line = escape_hidden(" ".join(str(text).splitlines()), keep="")
    # A cell ends at a bar, unless one backslash is before it, which the cell then loses.
    line = line.replace("\\|", "\\ |").replace("|", "\\|")
    marks = "`" * (max(map(len, _BACKTICKS.findall(line)), default=0) + 1)
    space = " " if "`" in line else ""
    return Markdown(f"{marks}{space}{line}{space}{marks}")


def write_code_block(text: str, language: str = "") -> Markdown:
    """Writes lines of text as a block of code in Markdown."""
    lines = escape_hidden(text)
    marks = "`" * max(3, max(map(len, _BACKTICKS.findall(lines)), default=0) + 1)
    return Markdown(f"{marks}{language}\n{lines}\n{marks}")


def write_row(*cells: object) -> Markdown:
    """Writes a row of a table in Markdown."""
    return Markdown(f"| {' | '.join(map(escape_markdown, cells))} |")

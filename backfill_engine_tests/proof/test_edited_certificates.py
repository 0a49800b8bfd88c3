"""Whatever is edited in a document, anywhere, shows; what is no certificate any more is one line.

Whoever makes a new seal, too, is `test_forged_certificates.py`'s.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backfill_engine.errors import CertificateError
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.proof.certificates import (
    CertificateDocument,
    list_documents,
    write_certificate,
)
from backfill_engine_tests.proof.test_certificates import CERTIFICATE


@pytest.fixture
def document(tmp_path: Path) -> CertificateDocument:
    name = CERTIFICATE.asset_key.replace("/", ".")
    place = tmp_path / "certificates" / "backfill" / CERTIFICATE.run_id / name
    write_certificate(str(place), CERTIFICATE, page="")
    (found,) = list_documents(Warehouse(str(tmp_path)))
    return found


def list_edits(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """All that differs from a value by one edit, each with words for it."""
    others = {str: [f"{value}x", 1], int: [f"{value}", 7_000], float: [f"{value}", -1.5, 9.25]}
    for other in [*others.get(type(value), ["", 0, False]), None]:
        yield f"{where} = {other!r}", other
    if isinstance(value, dict):
        yield f"{where}.unknown", {**value, "unknown": None}
        for key, part in value.items():
            rest = {name: value[name] for name in value if name != key}
            yield f"{where}.{key} is gone", rest
            yield f"{where}.{key} is renamed", {**rest, f"{key}_": part}
            for words, edited in list_edits(part, f"{where}.{key}"):
                yield words, {**value, key: edited}
    if isinstance(value, list):
        yield f"{where}[more]", [*value, None]
        for at, part in enumerate(value):
            yield f"{where}[{at}] is gone", value[:at] + value[at + 1 :]
            yield f"{where}[{at}] is doubled", [*value[:at], part, *value[at:]]
            for words, edited in list_edits(part, f"{where}[{at}]"):
                yield words, [*value[:at], edited, *value[at + 1 :]]


def is_noticed(document: CertificateDocument, text: str) -> bool:
    Path(document.path).write_text(text)
    try:
        return not document.is_as_written(document.read())
    except CertificateError as error:
        assert str(error).isprintable(), "it is one line"
        assert "restore it from a copy" in str(error)
        return True


def test_no_edit_of_any_part_goes_unnoticed(document: CertificateDocument) -> None:
    text = Path(document.path).read_text()
    assert document.read() == CERTIFICATE.from_json(CERTIFICATE.to_json())
    assert not is_noticed(document, text)
    edits = {
        words: json.dumps(edited, separators=(",", ":"), ensure_ascii=False) + "\n"
        for words, edited in list_edits(json.loads(text))
    }
    unchanged = [words for words, edited in edits.items() if edited == text]
    assert all(words.endswith(" = None") for words in unchanged), "what is null already"
    assert len(edits) > 400
    noticed = [words for words, edited in edits.items() if is_noticed(document, edited)]
    assert edits.keys() - noticed == {*unchanged}


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace('"seconds":', '"seconds":9,"seconds":'),
        lambda text: text.replace(",", ", "),
        lambda text: text + text,
        lambda text: text.replace('"seconds":1.5', '"seconds":1.50'),
        lambda text: "\ufeff" + text,
    ],
    ids=["a key twice", "spaces", "two documents", "another spelling", "a byte-order mark"],
)
def test_nor_one_that_says_the_same_to_some_readers(
    document: CertificateDocument, edit: Any
) -> None:
    assert is_noticed(document, edit(Path(document.path).read_text()))


TIMES = ["yesterday", "", "2013-02-01T00:00:00", "9999-12-31T23:59:59+00:00", "+1", "Ⅷ"]


@pytest.mark.parametrize("where", ["started_at", "committed_at", "completed_at"])
@pytest.mark.parametrize("time", TIMES)
def test_a_time_that_is_none_is_one_line(
    document: CertificateDocument, where: str, time: str
) -> None:
    path = Path(document.path)
    before, _, after = path.read_text().partition(f'"{where}":"')
    path.write_text(f'{before}"{where}":"{time}"{after[after.index(chr(34)) + 1 :]}')
    with pytest.raises(CertificateError, match=f"can't be read .*{where}") as found:
        document.read()
    assert str(found.value).isprintable()

"""XXH64 in plain Python, from its specification (github.com/Cyan4973/xxHash, doc/xxhash_spec.md).

A second opinion on Spark's, so it shares nothing with it.
"""

_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MASK = 2**64 - 1


def hash_bytes(content: bytes, seed: int) -> int:
    """The unsigned 64-bit hash."""
    seed &= _MASK
    at = 0
    if len(content) >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while len(content) - at >= 32:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], _read(content, at + 8 * lane, 8))
            at += 32
        mixed = sum(map(_rotate, lanes, (1, 7, 12, 18)))
        for lane in lanes:
            mixed = (mixed ^ _round(0, lane)) * _P1 + _P4
    else:
        mixed = seed + _P5
    mixed = (mixed + len(content)) & _MASK
    while len(content) - at >= 8:
        mixed = _rotate(mixed ^ _round(0, _read(content, at, 8)), 27) * _P1 + _P4
        at += 8
    if len(content) - at >= 4:
        mixed = _rotate(mixed ^ _read(content, at, 4) * _P1, 23) * _P2 + _P3
        at += 4
    for byte in content[at:]:
        mixed = _rotate(mixed ^ byte * _P5, 11) * _P1
    mixed &= _MASK
    mixed = (mixed ^ mixed >> 33) * _P2 & _MASK
    mixed = (mixed ^ mixed >> 29) * _P3 & _MASK
    return mixed ^ mixed >> 32


def _read(content: bytes, at: int, width: int) -> int:
    return int.from_bytes(content[at : at + width], "little")


def _rotate(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> 64 - bits) & _MASK


def _round(lane: int, word: int) -> int:
    return _rotate(lane + word * _P2, 31) * _P1 & _MASK

"""Units: every prefix by value, every refusal by its words, and parse(format(x)) == x."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from capplan import units
from capplan.errors import QuantityError
from capplan.units import families

Parse = Callable[..., float]

PARSERS: dict[str, Parse] = {
    name: getattr(units, f"parse_{name}")
    for name in (
        "duration",
        "bytes",
        "bytes_per_s",
        "flop_per_s",
        "rate",
        "tokens",
        "fraction",
        "money",
        "power",
        "frequency",
    )
}

# The numbers are written out, so that no table of prefixes can check itself.
VALUES: list[tuple[str, str, float]] = [
    ("duration", "1 ns", 0.000000001),
    ("duration", "1 us", 0.000001),
    ("duration", "1 µs", 0.000001),
    ("duration", "1 μs", 0.000001),
    ("duration", "1 ms", 0.001),
    ("duration", "1 s", 1.0),
    ("duration", "1 sec", 1.0),
    ("duration", "1 min", 60.0),
    ("duration", "1 h", 3600.0),
    ("duration", "1 hour", 3600.0),
    ("duration", "1 d", 86400.0),
    ("duration", "1 day", 86400.0),
    ("duration", "400ms", 0.4),
    ("duration", "0.4s", 0.4),
    ("duration", "  1.5  h ", 5400.0),
    ("duration", "1e3 ms", 1.0),
    ("duration", "1E-3s", 0.001),
    ("duration", "+.5s", 0.5),
    ("duration", "5.s", 5.0),
    ("duration", "1,000 ms", 1.0),
    ("duration", "0 s", 0.0),
    ("duration", "0e999999999 s", 0.0),
    ("bytes", "1 B", 1),
    ("bytes", "1 byte", 1),
    ("bytes", "2 bytes", 2),
    ("bytes", "1 kB", 1_000),
    ("bytes", "1 KB", 1_000),
    ("bytes", "1 MB", 1_000_000),
    ("bytes", "1 GB", 1_000_000_000),
    ("bytes", "1 TB", 1_000_000_000_000),
    ("bytes", "1 PB", 1_000_000_000_000_000),
    ("bytes", "1 KiB", 1_024),
    ("bytes", "1 MiB", 1_048_576),
    ("bytes", "1 GiB", 1_073_741_824),
    ("bytes", "1 TiB", 1_099_511_627_776),
    ("bytes", "1 PiB", 1_125_899_906_842_624),
    ("bytes", "81,559 MiB", 85_520_809_984),
    ("bytes", "0.7 B", 1),
    ("bytes", "0.3 B", 0),
    ("bytes", "0.1 GiB", 107_374_182),
    ("bytes_per_s", "1 B/s", 1.0),
    ("bytes_per_s", "1 kB/s", 1_000.0),
    ("bytes_per_s", "1 KB/s", 1_000.0),
    ("bytes_per_s", "1 MB/s", 1_000_000.0),
    ("bytes_per_s", "450 GB/s", 450_000_000_000.0),
    ("bytes_per_s", "3.35 TB/s", 3_350_000_000_000.0),
    ("bytes_per_s", "1 PB/s", 1_000_000_000_000_000.0),
    ("bytes_per_s", "1 KiB/s", 1_024.0),
    ("bytes_per_s", "1 MiB/s", 1_048_576.0),
    ("bytes_per_s", "819 GiB/s", 879_394_553_856.0),
    ("bytes_per_s", "1 TiB/s", 1_099_511_627_776.0),
    ("bytes_per_s", "1 PiB/s", 1_125_899_906_842_624.0),
    ("bytes_per_s", "1 bit/s", 0.125),
    ("bytes_per_s", "1 kbit/s", 125.0),
    ("bytes_per_s", "1 Kbit/s", 125.0),
    ("bytes_per_s", "1 Mbit/s", 125_000.0),
    ("bytes_per_s", "400 Gbit/s", 50_000_000_000.0),
    ("bytes_per_s", "1 Tbit/s", 125_000_000_000.0),
    ("bytes_per_s", "1 Pbit/s", 125_000_000_000_000.0),
    ("bytes_per_s", "1 Kibit/s", 128.0),
    ("bytes_per_s", "1 Mibit/s", 131_072.0),
    ("bytes_per_s", "1 Gibit/s", 134_217_728.0),
    ("bytes_per_s", "1 Tibit/s", 137_438_953_472.0),
    ("bytes_per_s", "1 Pibit/s", 140_737_488_355_328.0),
    ("flop_per_s", "1 FLOP/s", 1.0),
    ("flop_per_s", "1 kFLOP/s", 1_000.0),
    ("flop_per_s", "1 MFLOP/s", 1_000_000.0),
    ("flop_per_s", "1 GFLOP/s", 1_000_000_000.0),
    ("flop_per_s", "989.4 TFLOP/s", 989_400_000_000_000.0),
    ("flop_per_s", "989.4 TFLOPS", 989_400_000_000_000.0),
    ("flop_per_s", "989.4TFLOPs", 989_400_000_000_000.0),
    ("flop_per_s", "1 PFLOP/s", 1_000_000_000_000_000.0),
    ("flop_per_s", "1 EFLOP/s", 1_000_000_000_000_000_000.0),
    ("flop_per_s", "1978.9 TOP/s", 1_978_900_000_000_000.0),
    ("flop_per_s", "1978.9 TOPS", 1_978_900_000_000_000.0),
    ("flop_per_s", "1978.9 TOPs", 1_978_900_000_000_000.0),
    ("rate", "100", 100.0),
    ("rate", "100/s", 100.0),
    ("rate", "100/sec", 100.0),
    ("rate", "100 / s", 100.0),
    ("rate", "100 req/s", 100.0),
    ("rate", "100 requests/s", 100.0),
    ("rate", "100 rps", 100.0),
    ("rate", "100 qps", 100.0),
    ("rate", "300/min", 5.0),
    ("rate", "3600/h", 1.0),
    ("rate", "3600/hour", 1.0),
    ("rate", "86400/d", 1.0),
    ("rate", "86400/day", 1.0),
    ("rate", "1k", 1_000.0),
    ("rate", "1.5k/s", 1_500.0),
    ("rate", "1.5K/s", 1_500.0),
    ("rate", "1M/s", 1_000_000.0),
    ("rate", "1G/s", 1_000_000_000.0),
    ("rate", "1B/s", 1_000_000_000.0),
    ("rate", "5M/day", 57.870370370370374),
    ("rate", "5M req/d", 57.870370370370374),
    ("rate", "2B/day", 23148.14814814815),
    ("tokens", "1024", 1_024),
    ("tokens", "1,024", 1_024),
    ("tokens", "1_024", 1_024),
    ("tokens", "1024 tokens", 1_024),
    ("tokens", "1 token", 1),
    ("tokens", "8k", 8_000),
    ("tokens", "8K", 8_000),
    ("tokens", "1.5k", 1_500),
    ("tokens", "1M", 1_000_000),
    ("tokens", "1G", 1_000_000_000),
    ("tokens", "1B", 1_000_000_000),
    ("tokens", "8Ki", 8_192),
    ("tokens", "1Mi", 1_048_576),
    ("tokens", "1Gi", 1_073_741_824),
    ("tokens", "1Ti", 1_099_511_627_776),
    ("tokens", "1Pi", 1_125_899_906_842_624),
    ("tokens", "0", 0),
    ("fraction", "0.9", 0.9),
    ("fraction", "90%", 0.9),
    ("fraction", "90 %", 0.9),
    ("fraction", "0", 0.0),
    ("fraction", "1", 1.0),
    ("fraction", "100%", 1.0),
    ("money", "2.5", 2.5),
    ("money", "$2.50", 2.5),
    ("money", "$ 2.50", 2.5),
    ("money", "2.50 USD", 2.5),
    ("money", "$1,024.50", 1024.5),
    ("power", "700 W", 700.0),
    ("power", "1.2 kW", 1_200.0),
    ("power", "1 MW", 1_000_000.0),
    ("frequency", "1 Hz", 1.0),
    ("frequency", "1 kHz", 1_000.0),
    ("frequency", "1830 MHz", 1_830_000_000.0),
    ("frequency", "1.98 GHz", 1_980_000_000.0),
]


@pytest.mark.parametrize(("family", "text", "expected"), VALUES)
def test_value(family: str, text: str, expected: float) -> None:
    value = PARSERS[family](text)
    assert value == expected
    assert type(value) is type(expected)


def test_every_unit_of_every_table_is_in_the_values_above() -> None:
    seen = {(family, re.sub(r"^[$+\d.,_eE-]+", "", t.replace(" ", ""))) for family, t, _ in VALUES}
    for family in ("duration", "bytes", "bytes_per_s", "power", "frequency", "fraction", "money"):
        table = getattr(families, {"fraction": "SHARE"}.get(family, family.upper()))
        assert {unit for name, unit in seen if name == family} == set(table.factors)


@pytest.mark.parametrize(
    ("text", "size"), [("GB", 1_000_000_000), ("GIB", 1_073_741_824), ("MIB", 1_048_576)]
)
def test_constants(text: str, size: int) -> None:
    assert getattr(units, text) == size


TOO_LONG = "9" * 65 + "ms"
REFUSED: list[tuple[str, str, str, str]] = [
    # A unit is missing, or could mean two things.
    ("duration", "400", "`400` has no unit", "write 400ms or 400s"),
    ("duration", "5m", "`5m` may mean minutes or milliseconds", "write 5min or 5ms"),
    ("bytes", "80", "`80` has no unit", "write 80GB or 80GiB"),
    ("bytes", "80Gb", "`80Gb` may mean bits or bytes", "write 80GB for bytes"),
    ("bytes", "80Gib", "`80Gib` may mean bits or bytes", "write 80GiB for bytes"),
    ("bytes", "80G", "`80G` may mean GB or GiB", "write 80GB or 80GiB"),
    ("bytes", "80 k", "`80 k` may mean kB or KiB", "write 80kB or 80KiB"),
    ("bytes", "80 Gbit", "`80 Gbit` counts bits", "write bytes, such as 80GB or 80GiB"),
    (
        "bytes_per_s",
        "200 Gb/s",
        "`200 Gb/s` may mean bits or bytes",
        "write 200Gbit/s for bits or 200GB/s for bytes",
    ),
    (
        "bytes_per_s",
        "200Gbps",
        "`200Gbps` may mean bits or bytes",
        "write 200Gbit/s for bits or 200GB/s for bytes",
    ),
    ("bytes_per_s", "450", "`450` has no unit", "write 450GB/s or 450Gbit/s"),
    ("flop_per_s", "989", "`989` has no unit", "write 989TFLOP/s or 989TOP/s"),
    ("power", "700", "`700` has no unit", "write 700W or 700kW"),
    ("frequency", "1830", "`1830` has no unit", "write 1830MHz or 1830GHz"),
    # A unit is misspelt.
    ("duration", "400 Ms", "has an unknown unit, `Ms`", "did you mean `400ms`?"),
    ("duration", "4 minutes", "has an unknown unit, `minutes`", "did you mean `4min`?"),
    ("duration", "4 parsec", "has an unknown unit, `parsec`", "write 400ms, 0.4s or 2h"),
    ("bytes", "80gb", "has an unknown unit, `gb`", "did you mean `80GB`?"),
    ("bytes", "80kib", "has an unknown unit, `kib`", "did you mean `80KiB`?"),
    ("bytes", "80Gi", "has an unknown unit, `Gi`", "did you mean `80GiB`?"),
    ("bytes_per_s", "450GB", "has an unknown unit, `GB`", "did you mean `450GB/s`?"),
    ("bytes_per_s", "450 GBps", "has an unknown unit, `GBps`", "did you mean `450GB/s`?"),
    ("bytes_per_s", "1 gbit/s", "has an unknown unit, `gbit/s`", "did you mean `1Gbit/s`?"),
    ("flop_per_s", "989 TFLOP", "has an unknown unit, `TFLOP`", "did you mean `989TFLOP/s`?"),
    ("flop_per_s", "989 tflop/s", "has an unknown unit", "did you mean `989TFLOP/s`?"),
    ("rate", "5m/day", "has an unknown unit, `m/day`", "did you mean `5M/day`?"),
    ("rate", "9 tok/s", "has an unknown unit, `tok/s`", "write 100, 100/s, 300/min or 5M/day"),
    ("tokens", "8ki", "has an unknown unit, `ki`", "did you mean `8Ki`?"),
    ("money", "2 usd", "has an unknown unit, `usd`", "did you mean `2USD`?"),
    ("power", "1 kw", "has an unknown unit, `kw`", "did you mean `1kW`?"),
    ("frequency", "1 ghz", "has an unknown unit, `ghz`", "did you mean `1GHz`?"),
    # The number is no number, or none that will do.
    ("duration", "", "an empty text is not a duration", "write 400ms, 0.4s or 2h"),
    ("duration", "  ", "an empty text is not a duration", "write 400ms, 0.4s or 2h"),
    ("duration", "fast", "`fast` is not a duration", "write 400ms, 0.4s or 2h"),
    ("duration", "1,5 ms", "`1,5 ms` is not a duration", "decimals as 0.5"),
    ("duration", "1.2.3 s", "`1.2.3 s` is not a duration", "decimals as 0.5"),
    ("duration", "٣ s", "`٣ s` is not a duration", "write 400ms"),
    ("duration", "3٣ s", "`3٣ s` is not a duration", "decimals as 0.5"),
    ("duration", "-5ms", "`-5ms` is negative", "write a duration of zero or more"),
    ("duration", "−5ms", "`−5ms` is negative", "write a duration of zero or more"),
    ("duration", "nan", "`nan` is not a finite number", "write 400ms"),
    ("duration", "-inf s", "`-inf s` is not a finite number", "write 400ms"),
    ("duration", "1e31 s", "`1e31 s` is too large", "write 400ms"),
    ("duration", "1e999999999 s", "`1e999999999 s` is too large", "write 400ms"),
    ("duration", "1e-999999999 s", "`1e-999999999 s` is too small", "write 400ms"),
    ("duration", f"1e{'9' * 50} s", "is too large", "write 400ms"),
    ("duration", TOO_LONG, "`9999999999999999...` is too long for a duration", "write 400ms"),
    ("duration", "1\x1b[2Js", "`1?[2Js` has an unknown unit, `?[2Js`", "write 400ms"),
    ("money", "-$5", "`-$5` is negative", "write an amount of money of zero or more"),
    ("money", "$-5", "`$-5` is negative", "write an amount of money of zero or more"),
    ("money", "$", "`$` is not an amount of money", "write 2.5, $2.50 or 2.50 USD"),
    ("money", "€2", "`€2` is not an amount of money", "write 2.5, $2.50 or 2.50 USD"),
    ("tokens", "1,02", "`1,02` is not a number of tokens", "write thousands as 1,024"),
    ("tokens", "1024,000", "`1024,000` is not a number of tokens", "write thousands as 1,024"),
    ("tokens", "1__0", "`1__0` is not a number of tokens", "write thousands as 1,024"),
    ("tokens", "1.5", "`1.5` is not a whole number", "write 1024, 8k (8,000) or 8Ki (8,192)"),
    ("fraction", "90", "`90` is not a share", "write 90% or 0.9"),
    ("fraction", "1.0000000000000000001", "is not a share", "write "),
    ("fraction", "150%", "`150%` is not a share", "write 0.9 or 90%"),
]


@pytest.mark.parametrize(("family", "text", "message", "hint"), REFUSED)
def test_refused(family: str, text: str, message: str, hint: str) -> None:
    with pytest.raises(QuantityError) as caught:
        PARSERS[family](text)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(("family", "text", "_message", "_hint"), REFUSED)
def test_what_a_hint_offers_is_read(family: str, text: str, _message: str, _hint: str) -> None:
    with pytest.raises(QuantityError) as caught:
        PARSERS[family](text)
    if "thousands" in (hint := caught.value.hint or "") or "zero or more" in hint:
        return
    offers = re.findall(r"`(.*?)`|(\$?\d[\d.,]*[%A-Za-z/]*(?: USD)?)(?=\)|,|\s|$)", hint)
    assert offers
    for offer in offers:
        assert PARSERS[family](max(offer).rstrip(",")) > 0


@pytest.mark.parametrize("family", PARSERS)
def test_zero_is_refused_where_it_must_be_positive(family: str) -> None:
    unit = {
        "duration": "s",
        "bytes": "GB",
        "bytes_per_s": "GB/s",
        "flop_per_s": "FLOP/s",
        "power": "W",
        "frequency": "Hz",
    }.get(family, "")
    assert PARSERS[family](f"0{unit}") == 0
    assert PARSERS[family](f"1{unit}", positive=True) > 0
    with pytest.raises(QuantityError, match=f"`0{unit}` is zero") as caught:
        PARSERS[family](f"0{unit}", positive=True)
    assert "above zero" in (caught.value.hint or "")


def test_positive_is_judged_on_whole_bytes_and_names_the_right_fault_of_tokens() -> None:
    with pytest.raises(QuantityError, match="is zero"):
        units.parse_bytes("0.3 B", positive=True)
    with pytest.raises(QuantityError, match="is not a whole number"):
        units.parse_tokens("0.3", positive=True)


QUANTITY_LIKE = st.from_regex(
    r"\A[ $+-]{0,2}[0-9]{1,4}[.,_]?[0-9]{0,4}([eE][+-]?[0-9]{1,20})? ?[a-zA-Zµμ%/]{0,8}\Z"
)


@pytest.mark.parametrize("family", PARSERS)
@given(text=st.one_of(st.text(), st.text("0123456789.,_eE+-/%$ kKMGTPibBsmnuµ"), QUANTITY_LIKE))
@example(text="1e9999999999999999999999")
@example(text="0" * 63 + "1")
@example(text="1e" + "0" * 60)
@example(text="\ud800")
@example(text="{n} {0}")
@example(text="1{n}")
def test_any_text_is_a_number_or_a_quantity_error(family: str, text: str) -> None:
    value, refusal = 0.0, None
    try:
        value = PARSERS[family](text)
    except QuantityError as error:
        refusal = error
    assert math.isfinite(value)
    assert value >= 0
    if refusal:
        assert refusal.hint
        assert 0 < len(refusal.message) < 250
        assert refusal.message.isprintable()


FLOATS = st.one_of(
    st.just(0.0),
    st.floats(1e-12, 1e25),
    # Floats drawn from a range are mostly near its upper end; these are even over magnitudes.
    st.builds(lambda m, e: m * 10.0**e, st.floats(1, 9.999), st.integers(-12, 24)),
    # What people write: few digits.
    st.builds(lambda m, e: float(f"{m}e{e}"), st.integers(1, 9999), st.integers(-12, 21)),
)
COUNTS = st.one_of(
    st.integers(0, 10**25),
    st.integers(0, 10_000),
    st.builds(lambda m, e: m << e, st.integers(0, 2047), st.integers(0, 60)),
    st.builds(lambda m, e: m * 10**e, st.integers(0, 2047), st.integers(0, 20)),
)


@pytest.mark.parametrize(
    "family", ["duration", "bytes_per_s", "flop_per_s", "rate", "money", "power", "frequency"]
)
@given(value=FLOATS)
@example(value=1e-12)
@example(value=1e25)
@example(value=0.1 + 0.2)
def test_exact_text_is_read_back_as_the_same_float(family: str, value: float) -> None:
    text = getattr(units, f"format_{family}")(value)
    assert PARSERS[family](text) == value, text
    assert "e" not in text.split(" ")[0]


@given(st.one_of(st.floats(0, 1).filter(lambda x: x == 0 or x >= 1e-12), st.floats(1e-12, 1e-6)))
@example(1 - 2**-53)
def test_exact_share_is_read_back(share: float) -> None:
    assert units.parse_fraction(units.format_fraction(share)) == share


@given(COUNTS, st.booleans())
def test_exact_bytes_are_read_back(size: int, binary: bool) -> None:
    text = units.format_bytes(size, binary=binary)
    assert units.parse_bytes(text) == size, text
    assert not text.endswith("iB" if not binary else (" kB", " MB", " GB", " TB", " PB"))


@given(COUNTS)
def test_exact_tokens_are_read_back(tokens: int) -> None:
    assert units.parse_tokens(units.format_tokens(tokens)) == tokens


@given(FLOATS, st.integers(1, 12))
def test_rounded_text_is_within_half_a_digit(value: float, digits: int) -> None:
    read = units.parse_duration(units.format_duration(value, digits=digits))
    assert read == pytest.approx(value, rel=0.5000001 * 10.0 ** (1 - digits), abs=0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.format_duration(0.4), "400 ms"),
        (units.format_duration(0.00001), "10 us"),
        (units.format_duration(5e-9), "5 ns"),
        (units.format_duration(1e-12), "0.000000000001 s"),
        (units.format_duration(90), "90 s"),
        (units.format_duration(7200.0), "2 h"),
        (units.format_duration(86400), "1 d"),
        (units.format_duration(5000), "5000 s"),
        (units.format_duration(0), "0 s"),
        (units.format_bytes(80_000_000_000, binary=False), "80 GB"),
        (units.format_bytes(80 * units.GIB, binary=True), "80 GiB"),
        (units.format_bytes(1536, binary=True), "1.5 KiB"),
        (units.format_bytes(1_073_741_825, binary=True), "1073741825 B"),
        (units.format_bytes(1_234_567, binary=False), "1.234567 MB"),
        (units.format_bytes(0, binary=True), "0 B"),
        (units.format_bytes_per_s(3.35e12), "3.35 TB/s"),
        (units.format_flop_per_s(989.4e12), "989.4 TFLOP/s"),
        (units.format_rate(100.0), "100 req/s"),
        (units.format_tokens(1024), "1,024"),
        (units.format_fraction(0.9), "90 %"),
        (units.format_fraction(0.001), "0.1 %"),
        (units.format_money(2.5), "$2.50"),
        (units.format_money(2), "$2.00"),
        (units.format_money(0.00123), "$0.00123"),
        (units.format_money(0), "$0.00"),
        (units.format_power(700), "700 W"),
        (units.format_power(1200), "1.2 kW"),
        (units.format_frequency(1.98e9), "1.98 GHz"),
    ],
)
def test_exact_text(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.format_duration(0.00687, digits=3), "6.87 ms"),
        (units.format_duration(0.9999996, digits=3), "1.00 s"),
        (units.format_duration(0.9994, digits=3), "999 ms"),
        (units.format_duration(59.99, digits=3), "1.00 min"),
        (units.format_duration(0, digits=3), "0 s"),
        (units.format_duration(1e-12, digits=3), "0.00100 ns"),
        (units.format_duration(-0.003, digits=3), "-3.00 ms"),
        (units.format_duration(86_400 * 36_500, digits=3), "36,500 d"),
        (units.format_bytes(57e9, binary=True, digits=3), "53.1 GiB"),
        (units.format_bytes(57e9, binary=False, digits=3), "57.0 GB"),
        (units.format_bytes(1023.9 * units.MIB, binary=True, digits=3), "1.00 GiB"),
        (units.format_bytes(1023.9 * units.MIB, binary=True, digits=5), "1,023.9 MiB"),
        (units.format_bytes(1000 * units.MIB, binary=True, digits=3), "1,000 MiB"),
        (units.format_bytes(5, binary=True, digits=3), "5 B"),
        (units.format_flop_per_s(312e12, digits=3), "312 TFLOP/s"),
        (units.format_flop_per_s(999.9e12, digits=3), "1.00 PFLOP/s"),
        (units.format_bytes_per_s(2.039e12, digits=4), "2.039 TB/s"),
        (units.format_rate(57.87, digits=3), "57.9 req/s"),
        (units.format_rate(23148.148, digits=3), "23,100 req/s"),
        (units.format_rate(0.0123456, digits=3), "0.0123 req/s"),
        (units.format_tokens(412_344, digits=3), "412,000"),
        (units.format_tokens(5, digits=3), "5"),
        (units.format_fraction(0.861, digits=3), "86.1 %"),
        (units.format_fraction(0.99996, digits=3), "100 %"),
        (units.format_money(2.5, digits=3), "$2.50"),
        (units.format_money(0.5, digits=1), "$0.50"),
        (units.format_money(12_345.6, digits=3), "$12,300"),
        (units.format_money(0.006543, digits=3), "$0.00654"),
        (units.format_money(-2.5, digits=3), "-$2.50"),
        (units.format_money(0, digits=3), "$0.00"),
        (units.format_power(10_240, digits=3), "10.2 kW"),
        (units.format_frequency(1.83e9, digits=3), "1.83 GHz"),
        (units.format_number(153), "153"),
        (units.format_number(1), "1.00"),
        (units.format_number(25_600), "25,600"),
        (units.format_number(0.00654), "0.00654"),
        (units.format_number(999.96), "1,000"),
        (units.format_number(0), "0"),
        (units.format_number(-1.5), "-1.50"),
        (units.format_number(0.0001), "0.000100"),
        (units.format_number(0.00001234), "1.23e-5"),
        (units.format_number(999e12), "999,000,000,000,000"),
        (units.format_number(1e15), "1.00e+15"),
        (units.format_number(9.9999e14), "1.00e+15"),
        (units.format_number(7, digits=1), "7"),
    ],
)
def test_text_for_people(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_has_no_text(value: float) -> None:
    for write in (units.format_number, units.format_duration, units.format_money):
        with pytest.raises(ValueError, match="cannot be shown"):
            write(value)


def test_import_is_light() -> None:
    code = "import sys, capplan.units; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pydantic", "yaml", "rich", "typer", "numpy"} & set(done.stdout.split())

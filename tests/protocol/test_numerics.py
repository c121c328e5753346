"""The numeric replies."""

import re

from culture.protocol.numerics import Numeric


def test_each_numeric_is_three_digits_of_its_own() -> None:
    """RFC 2812 §5"""
    codes = [numeric.code for numeric in Numeric]
    assert all(re.fullmatch("[0-9]{3}", code) for code in codes)
    assert len(set(codes)) == len(codes) == len(Numeric.__members__)


def test_the_texts_can_be_sent() -> None:
    for numeric in Numeric:
        assert not re.search(r"[\r\n\0]", numeric.text)
        assert numeric.text == numeric.text.strip(" ")


def test_errors_are_in_the_ranges_of_errors() -> None:
    for numeric in Numeric:
        if "400" <= numeric.code < "600":
            assert numeric.name.startswith("ERR_")
        if numeric.code < "400":
            assert numeric.name.startswith("RPL_")


def test_some_everybody_knows() -> None:
    assert Numeric.RPL_WELCOME.code == "001"
    assert (Numeric.ERR_NOSUCHNICK.code, Numeric.ERR_NOSUCHNICK.text) == ("401", "No such nick/channel")
    assert Numeric.ERR_INPUTTOOLONG.code == "417"
    assert Numeric.RPL_SASLSUCCESS.code == "903"

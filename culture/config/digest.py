"""What culture.yaml may say about the digest that is posted by itself."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from culture.config.agents import AgentNick, Network, WebAddress
from culture.config.values import Channel, Duration, Misfit, Settings

DAY = 86_400.0
_CLOCK = re.compile("([01][0-9]|2[0-3]):[0-5][0-9]")


def _clock(text: str) -> str:
    if not _CLOCK.fullmatch(text):
        raise ValueError(f"{text!r} is not a time of the day such as 08:00 (in quotes)")
    return text


class Digest(Settings):
    """How often, where to, and whether an agent puts it into words."""

    every: Duration = DAY
    at: Annotated[str, AfterValidator(_clock)] | None = None
    channel: Channel | None = None
    webhook: WebAddress | None = Field(None, repr=False)
    format: Literal["auto", "discord", "slack", "ntfy", "json"] = "auto"
    allow_private: tuple[Network, ...] = ()
    summarise: AgentNick | None = None
    summary_timeout: Duration = 120.0

    @model_validator(mode="after")
    def _a_time_of_the_day_is_daily(self) -> Self:
        if self.at is not None and self.every != DAY:
            raise Misfit("goes with every: 24h alone", "at")
        return self

    @property
    def is_posted(self) -> bool:
        """Whether there is anywhere to post it."""
        return self.channel is not None or self.webhook is not None

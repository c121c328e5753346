"""The links that were shared: a skill that remembers them and answers URLS."""

from culture.skills.urlindex.skill import UrlIndex

__all__ = ["UrlIndex"]

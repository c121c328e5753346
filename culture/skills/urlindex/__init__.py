"""The urlindex skill: an index of the links shared in channels; answers URLS."""

from culture.skills.urlindex.skill import UrlIndex

__all__ = ["UrlIndex"]

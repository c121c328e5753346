"""The pages, one module each, with a constant ``VIEW`` (see :mod:`culture.web.view`)."""

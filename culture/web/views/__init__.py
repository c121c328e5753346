"""The pages of the web page: one module per page, each with a constant ``VIEW`` (see :mod:`culture.web.view`)."""

"""The board of a site, made when somebody first looks."""

from culture.web.board import Board
from culture.web.page import Page


def board_of(page: Page) -> Board:
    """The one that all pages of the site share."""
    state = page.request.app.state
    if not hasattr(state, "board"):
        state.board = Board(page.web.ledger)
    board: Board = state.board
    return board

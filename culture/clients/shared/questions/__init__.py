"""The questions an agent asks on IRC: kept on disk until somebody who may has answered, or the time is over."""

from culture.clients.shared.questions.board import MOST_OPEN, NoSuchQuestion, Questions, TooManyQuestions
from culture.clients.shared.questions.hearing import Taken
from culture.clients.shared.questions.model import Answer, Outcome, Question
from culture.clients.shared.questions.posting import PREFIX
from culture.clients.shared.questions.store import QuestionStore

__all__ = [
    "MOST_OPEN",
    "PREFIX",
    "Answer",
    "NoSuchQuestion",
    "Outcome",
    "Question",
    "QuestionStore",
    "Questions",
    "Taken",
    "TooManyQuestions",
]

"""The words of a text that occur most often."""


def top(text, number):
    words = text.split()
    counts = [(word, words.count(word)) for word in set(words)]
    return sorted(counts, key=lambda each: (-each[1], each[0]))[:number]

"""One IRC server: lines become messages, messages become events, events become lines."""

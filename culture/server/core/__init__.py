"""The path of a message: dispatch, network state, router, rendering.

| module | what it holds |
|---|---|
| ``dispatch`` | runs the lines of a session one at a time, under flood control |
| ``session``, ``session_lifecycle`` | one client connection; registering, attaching, leaving |
| ``network``, ``state``, ``changes/`` | the state of the network; its data; what each event changes |
| ``router`` | publishes events: applies, sends to sessions, calls subscribers |
| ``render``, ``encode`` | an event, or a message, as bytes |
| ``batches``, ``labeled_response``, ``multiline`` | IRCv3 batches, labelled answers, multiline messages |
| ``ids``, ``recent_messages`` | event ids; authors of the last messages, for REDACT |
| ``welcome``, ``isupport``, ``visibility`` | the welcome; tokens of 005; what a user may see |
| ``operator_notices``, ``tasks`` | notices to operators; background tasks |

The way of a message: ``Dispatcher.receive`` → handler → ``Router.publish`` → ``Network.apply`` → ``render`` → the
sessions' queues, which the poller writes at the end of the turn.
"""

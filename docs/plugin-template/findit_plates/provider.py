"""A provider that is asked in a protocol of its own: one function, and a row that names it."""

import json
import urllib.error
import urllib.request

from vlmeval_findit.models import CallError, Provider


def chat(body, endpoint, timeout):
    """Ask once: from the body of a chat completion to its reply."""
    asked = {"model": body["model"], "messages": body["messages"]}
    request = urllib.request.Request(
        endpoint.at("answers"),
        json.dumps(asked).encode(),
        {"Content-Type": "application/json", "X-Acme-Key": endpoint.key},
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            said = json.load(reply)
    except urllib.error.HTTPError as error:
        # 429 and 5xx may be answered later: the call is tried again.
        later = error.code == 429 or error.code >= 500
        raise CallError(f"acme: {error.reason}", error.code, transient=later) from None
    except (OSError, ValueError) as error:
        raise CallError(f"acme: {error}", transient=True) from None
    message = {"role": "assistant", "content": said["answer"]}
    return {
        "model": body["model"],
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": said["read"], "completion_tokens": said["written"]},
    }


ACME = Provider("acme", chat, "https://api.acme.example/v1", keys=("ACME_KEY",))

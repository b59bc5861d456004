"""The child that holds a parser written in C: reads one file after the other, each within the limits."""

from __future__ import annotations

from convlint.readers import format_of
from convlint.readers.children.limits import TOO_MUCH_MEMORY, limited
from convlint.readers.children.serve import Channel
from convlint.readers.children.wire import decode_request, encode, encode_defect
from convlint.report import InputError


def work(channel: Channel) -> None:
    """Answers each request with the outcome of reading that file."""
    while (request := channel.receive()) is not None:
        reader_name, path, options = decode_request(request)
        reader = format_of(reader_name).reader()
        reader.load_parser()
        try:
            with limited():
                answer = encode(reader.read(path, options))
        except MemoryError:
            answer = encode((None, (InputError(path=path, message=TOO_MUCH_MEMORY),)))
        except Exception as error:  # this process's last resort: the files after this one are still to be read
            answer = encode_defect(path, error)
        channel.send(answer)

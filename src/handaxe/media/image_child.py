"""The child process that opens one large image, which may decode to many times its file size."""

from handaxe.contract.faults.media import BadImage, ImageTooLarge
from handaxe.contract.ports.media import ImageLimits
from handaxe.media.images import fit_picture
from handaxe.process.bounded_child_io import ChildRequest


def main() -> None:
    """Answer the request in the arguments."""
    child_request = ChildRequest()
    request, data = child_request.request, child_request.read_input()
    limits = ImageLimits(request["max_side"], request["max_bytes"])
    try:
        picture = fit_picture(data.raw, request["kind"], limits)
    except BadImage as bad:
        child_request.send({"fault": "bad", "reason": bad.reason})
    except ImageTooLarge as large:
        child_request.send({"fault": "too_large", "claim": large.claim})
    else:
        facts = {
            "media_type": picture.media_type,
            "shown": [picture.width, picture.height],
            "original": [picture.original_width, picture.original_height],
            "is_changed": picture.is_changed,
            "is_animated": picture.is_animated,
        }
        child_request.send(facts, picture.data if picture.is_changed else b"")


if __name__ == "__main__":
    main()

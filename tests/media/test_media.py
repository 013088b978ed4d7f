"""Pictures and PDFs on this machine: what is missing, and what is asked at once."""

import asyncio
import io
import json
import sys
import threading
from pathlib import Path

import pytest
from PIL import Image
from tests.waiting import HANG_S, until

from handaxe.contract.faults.media import BadImage, NotInstalled
from handaxe.contract.ports.media import ImageLimits
from handaxe.media import child_process
from handaxe.media import images as pictures
from handaxe.media import local_media as local
from handaxe.media.jpeg import encode_jpeg
from handaxe.media.local_media import LocalMedia
from handaxe.media.memory_budget import MEDIA_MEMORY, MediaMemory
from handaxe.process import child_environment as own_program
from handaxe.text.encoding import detect_image_type, is_pdf


def png(size: tuple[int, int] = (8, 8)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, "red").save(buffer, "PNG")
    return buffer.getvalue()


async def test_without_the_picture_library_the_extra_is_named(monkeypatch):
    data = png()
    monkeypatch.delitem(sys.modules, pictures.__name__)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(NotInstalled, match=r"handaxe\[media\]"):
        await LocalMedia().fit_image(data, ImageLimits(100, 10_000))


async def test_without_the_pdf_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdfium2_raw", None)
    with pytest.raises(NotInstalled, match=r"handaxe\[media\]"):
        await LocalMedia().read_pdf(
            b"%PDF-1.7", ((1, 1),), ImageLimits(99, 9_999), max_pages=1, max_drawn=1
        )


async def test_only_the_four_kinds_of_picture_are_ever_decoded():
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "BMP")
    with pytest.raises(BadImage):
        await LocalMedia().fit_image(buffer.getvalue(), ImageLimits(100, 10_000))


async def test_many_pictures_at_once_all_come_out():
    media, data = LocalMedia(), png((1700, 40))
    asked = [media.fit_image(data, ImageLimits(1568, 100_000)) for _ in range(20)]
    found = await asyncio.gather(*asked)
    assert {(picture.width, picture.height) for picture in found} == {(1568, 37)}


async def test_the_loop_goes_on_while_a_large_picture_is_scaled(tmp_path, monkeypatch):
    on, go = tmp_path / "on", tmp_path / "go"
    # The child works only after the loop has noticed it and lets it.
    wait = f"open({str(on)!r}, 'w')\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    start = f"import os, time\n{wait}\n{own_program._START}"
    monkeypatch.setattr(own_program, "_START", start)
    monkeypatch.setattr(child_process, "LIMIT_S", HANG_S)
    asked = LocalMedia().fit_image(png((3000, 3000)), ImageLimits(1568, 100_000))
    scaling = asyncio.create_task(asked)
    await until(on.exists)
    go.touch()
    assert (await scaling).width == 1568


async def test_children_of_all_sessions_together_stay_below_the_ceiling(tmp_path, monkeypatch):
    begun, done = tmp_path / "begun", tmp_path / "done"
    for place in (begun, done):
        place.mkdir()
    # Each child says what it may take, and works only after it is let.
    wait = f"""import os, sys, time
name = str(os.getpid())
with open({str(tmp_path)!r} + "/" + name, "w") as said: said.write(sys.argv[1])
os.rename({str(tmp_path)!r} + "/" + name, {str(begun)!r} + "/" + name)
while not os.path.exists({str(done)!r} + "/" + name): time.sleep(0.01)
"""
    monkeypatch.setattr(own_program, "_START", wait + own_program._START)
    monkeypatch.setattr(child_process, "LIMIT_S", HANG_S)
    data, ceiling_bytes = png((3000, 3000)), 512 << 20
    sessions = [LocalMedia(lambda: ceiling_bytes) for _ in range(3)]
    limits = ImageLimits(1568, 100_000)
    asked = [asyncio.create_task(media.fit_image(data, limits)) for media in sessions * 2]
    for ended in range(len(asked)):
        # As many as there is room for are at work, and no more than that.
        await until(lambda so_far=ended: len(_names(begun)) >= min(so_far + 2, len(asked)))
        at_work = set(_names(begun)) - set(_names(done))
        requests = [json.loads((begun / name).read_text()) for name in at_work]
        assert sum(request["memory_bytes"] for request in requests) <= ceiling_bytes
        (done / min(at_work)).touch()
    assert {picture.width for picture in await asyncio.gather(*asked)} == {1568}
    assert MEDIA_MEMORY.used_bytes == 0


def _names(place: Path) -> list[str]:
    return [path.name for path in place.iterdir()]


async def test_who_wants_more_memory_than_there_is_gets_all_of_it_and_is_alone():
    memory = MediaMemory()
    order: list[str] = []

    async def take(name: str, wanted_bytes: int, until_then: asyncio.Event) -> None:
        async with memory.reserve(wanted_bytes, 100) as got_bytes:
            order.append(f"{name} {got_bytes}")
            await until_then.wait()

    first, last = asyncio.Event(), asyncio.Event()
    tasks = [
        asyncio.create_task(take(*asked))
        for asked in (("a", 60, first), ("b", 40, first), ("large", 500, last), ("c", 1, last))
    ]
    await until(lambda: len(order) == 2)
    tasks[1].cancel()
    await until(tasks[1].done)
    assert (order, memory.used_bytes) == (["a 60", "b 40"], 60)
    first.set()
    await until(lambda: len(order) == 3)
    assert (order[2], memory.used_bytes) == ("large 100", 100)
    tasks[3].cancel()
    await until(tasks[3].done)
    last.set()
    await tasks[2]
    assert (len(order), memory.used_bytes) == (3, 0)


def test_room_comes_back_from_a_session_in_another_thread():
    memory = MediaMemory()
    holds, go = threading.Event(), threading.Event()

    async def hold() -> None:
        async with memory.reserve(100, 100):
            holds.set()
            await asyncio.to_thread(go.wait, HANG_S)

    async def follow() -> int:
        taking = asyncio.create_task(_take_all(memory))
        await asyncio.sleep(0)
        go.set()
        return await asyncio.wait_for(taking, HANG_S)

    other = threading.Thread(target=asyncio.run, args=[hold()])
    other.start()
    assert holds.wait(HANG_S)
    assert asyncio.run(follow()) == 100
    other.join(HANG_S)
    assert memory.used_bytes == 0


async def _take_all(memory: MediaMemory) -> int:
    async with memory.reserve(100, 100) as got_bytes:
        return got_bytes


async def test_the_loop_goes_on_while_a_small_picture_is_scaled(monkeypatch):
    go, fit = threading.Event(), local._fit_small

    def wait_and_fit(*asked):
        assert go.wait(HANG_S)
        return fit(*asked)

    monkeypatch.setattr(local, "_fit_small", wait_and_fit)
    scaling = asyncio.create_task(LocalMedia().fit_image(png((40, 20)), ImageLimits(10, 10_000)))
    await asyncio.sleep(0.01)
    go.set()
    assert (await scaling).width == 10


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"])
async def test_every_way_to_store_colours_can_be_scaled(mode: str):
    buffer = io.BytesIO()
    Image.new(mode, (40, 20)).save(buffer, "JPEG" if mode == "CMYK" else "PNG")
    picture = await LocalMedia().fit_image(buffer.getvalue(), ImageLimits(10, 10_000))
    assert (picture.width, picture.height, picture.media_type) == (10, 5, "image/jpeg")


def test_a_limit_that_nothing_can_keep_ends_with_the_smallest_picture():
    data, size = encode_jpeg(Image.effect_noise((200, 100), 90).convert("RGB"), 1)
    assert max(size) <= 32
    assert data.startswith(b"\xff\xd8")


def test_kinds_are_told_by_their_first_bytes():
    assert detect_image_type(png()) == "PNG"
    assert detect_image_type(b"RIFF\x10\0\0\0WAVEfmt ") is None
    assert detect_image_type(b"") is None
    assert is_pdf(b"%PDF-1.4")
    assert is_pdf(b"\0\0junk\n%PDF-1.4")
    assert not is_pdf(b"a text about\n%PDF- headers")


async def test_a_large_picture_is_never_decoded_in_this_process(tmp_path):
    import random
    import subprocess
    import sys

    from PIL import Image

    path = tmp_path / "large.png"
    noise = random.Random(3).randbytes(2400 * 2000 * 3)
    Image.frombytes("RGB", (2400, 2000), noise).save(path, compress_level=1)
    script = """
import asyncio, resource, sys
from pathlib import Path
from handaxe.contract.ports.media import ImageLimits
from handaxe.media.local_media import LocalMedia
from handaxe.media.memory_budget import MEDIA_MEMORY, MediaMemory
from handaxe.media import child_process
data = Path(sys.argv[1]).read_bytes()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
picture = asyncio.run(LocalMedia().fit_image(data, ImageLimits(1568, 500_000)))
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
assert max(picture.width, picture.height) <= 1568 and picture.original_width == 2400
assert len(data) + grown < 3 * len(data), (len(data), grown)
"""
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, timeout=60)

"""Stands in for whoever rents out nodes. The name of the image decides what happens, so that each path of the machine
can be walked on purpose."""

from typing import Literal

Health = Literal["up", "starting", "withdrawn"]


def health(image: str, look: int) -> Health:
    """Looks at the nodes for the n-th time, from 1."""
    if "withdrawn" in image:
        return "withdrawn"
    if "never-starts" in image or ("slow-start" in image and look < 3):
        return "starting"
    return "up"

"""The papers' algorithms as plainly as possible: lists of independent keys, linear searches, no speed, no prefixes.

`access` returns the keys that left. Knows nothing about `tiers`.
"""

from typing import Protocol


class Reference(Protocol):
    def access(self, key: bytes) -> list[bytes]: ...


class NaiveLru:
    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.keys: list[bytes] = []

    def access(self, key: bytes) -> list[bytes]:
        if key in self.keys:
            self.keys.remove(key)
            self.keys.append(key)
            return []
        gone = [self.keys.pop(0)] if len(self.keys) == self.capacity else []
        self.keys.append(key)
        return gone


class NaiveS3Fifo:
    """Algorithm 1 of the SOSP '23 paper; index 0 is a queue's tail. `evict` ends as soon as one key has left."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.small: list[bytes] = []
        self.main: list[bytes] = []
        self.ghost: list[bytes] = []
        self.freq: dict[bytes, int] = {}

    def access(self, key: bytes) -> list[bytes]:
        if key in self.small or key in self.main:
            self.freq[key] = min(self.freq[key] + 1, 3)
            return []
        gone: list[bytes] = []
        while len(self.small) + len(self.main) == self.capacity:
            gone.append(self.evict())
        (self.main if key in self.ghost else self.small).append(key)
        if key in self.ghost:
            self.ghost.remove(key)
        self.freq[key] = 0
        return gone

    def evict(self) -> bytes:
        if len(self.small) * 10 >= self.capacity:
            gone = self.evict_small()
            return self.evict_main() if gone is None else gone
        return self.evict_main()

    def evict_small(self) -> bytes | None:
        while self.small:
            tail = self.small.pop(0)
            if self.freq[tail] > 1:
                self.freq[tail] = 0
                self.main.append(tail)
                if len(self.main) * 10 > self.capacity * 9:
                    return self.evict_main()
            else:
                self.ghost.append(tail)
                self.ghost = self.ghost[-(self.capacity * 9 // 10) :] if self.capacity > 1 else []
                return tail
        return None

    def evict_main(self) -> bytes:
        while self.freq[self.main[0]] > 0:
            tail = self.main.pop(0)
            self.freq[tail] -= 1
            self.main.append(tail)
        return self.main.pop(0)


class NaiveArc:
    """Figure 4 of the FAST '03 paper; index 0 is the LRU end of a list."""

    def __init__(self, capacity: int) -> None:
        self.c = capacity
        self.p = 0.0
        self.t1: list[bytes] = []
        self.t2: list[bytes] = []
        self.b1: list[bytes] = []
        self.b2: list[bytes] = []

    def access(self, x: bytes) -> list[bytes]:
        gone: list[bytes] = []
        if x in self.t1 or x in self.t2:
            (self.t1 if x in self.t1 else self.t2).remove(x)
            self.t2.append(x)
        elif x in self.b1:
            self.p = min(self.p + max(len(self.b2) / len(self.b1), 1.0), self.c)
            gone = [self.replace(x)]
            self.b1.remove(x)
            self.t2.append(x)
        elif x in self.b2:
            self.p = max(self.p - max(len(self.b1) / len(self.b2), 1.0), 0.0)
            gone = [self.replace(x)]
            self.b2.remove(x)
            self.t2.append(x)
        else:
            gone = self.miss(x)
            self.t1.append(x)
        return gone

    def miss(self, x: bytes) -> list[bytes]:
        num_l1, num_l2 = len(self.t1) + len(self.b1), len(self.t2) + len(self.b2)
        if num_l1 == self.c:
            if len(self.t1) == self.c:
                return [self.t1.pop(0)]
            self.b1.pop(0)
            return [self.replace(x)]
        if num_l1 + num_l2 >= self.c:
            if num_l1 + num_l2 == 2 * self.c:
                self.b2.pop(0)
            return [self.replace(x)]
        return []

    def replace(self, x: bytes) -> bytes:
        if self.t1 and (len(self.t1) > self.p or (x in self.b2 and len(self.t1) == self.p)):
            self.b1.append(self.t1.pop(0))
            return self.b1[-1]
        self.b2.append(self.t2.pop(0))
        return self.b2[-1]

"""The `FleetClock` of tests: the running loop's time, which is the wall's, too."""

import asyncio


class LoopTime:
    """From the loop that runs when it is asked."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def wall_ms(self) -> int:
        return int(self.monotonic() * 1000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

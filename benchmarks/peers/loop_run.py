"""The plain closed loop: so many callers a lane, each with the next call as soon as the last came back.

``work``: port, lanes (paths), limit (callers each). Says ready; told ``go`` it calls until told ``stop``.
"""

import asyncio

import aiohttp
import protocol
import uvloop


async def work(options: protocol.Options) -> None:
    told = await protocol.Told().open()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def caller(url: str) -> None:
            while True:
                async with session.post(url, data=b"{}") as response:
                    await response.read()

        protocol.say(ready=True)
        await told.word("go")
        callers = [
            asyncio.create_task(caller(f"http://127.0.0.1:{options['port']}{path}"))
            for path in options["lanes"]
            for _ in range(options["limit"])
        ]
        await told.word("stop")
        for each in callers:
            each.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
    protocol.say(stopped=True)


if __name__ == "__main__":
    protocol.main({"work": work}, run=uvloop.run)

import asyncio
from tests.integration.server.test_hostile import *
from tests.integration.server.test_hostile import site
from tests.support.research import *
import penstock
async def test_measure(site: Site) -> None:
    out = open("/tmp/audit17/m.txt", "w")
    for n in range(1000):
        await site.app.documents.add(f"text {n}", id=f"d{n}", metadata={f"k{i}": "x"*140 for i in range(99)})
    print("docs added", file=out, flush=True)
    await site.app.documents.add(filled("Hello world, this is a sentence. ", 4_000_000), id="big")
    for n in range(1000):
        await site.app.enqueue("fail", {"why": "x" * 5000 + str(n)})
    job = await site.app.enqueue("other", {"numbers": [0.5] * 60_000})
    job2 = await site.app.enqueue("other", {"numbers": "é" * 120_000})
    try:
        await asyncio.wait_for(site.work(), 240)
    except Exception as e: print(repr(e), file=out, flush=True)
    paths = ["/v1/documents?limit=1000", "/v1/documents/big/chunks", "/v1/documents/big", "/v1/pages?document=big&limit=1000000", "/v1/dead-letters?limit=1000", "/v1/dead-letters/groups", "/v1/jobs?limit=1000", f"/v1/jobs/{job.id}", "/v1/overview", "/metrics", "/v1/tasks", "/v1/history", "/v1/actions?limit=1000", "/v1/answers",
      "/jobs", "/documents", "/dead-letters", f"/jobs/{job.id}", f"/jobs/{job2.id}", "/documents/big", "/documents/d1", "/", "/v1/lanes", "/openapi.json", "/v1/events"]
    secret = None
    async with site.listening() as address:
        wire = await Wire.open(address)
        for path in paths:
            longest = []
            for _ in range(4):
                wire.close(); wire = await Wire.open(address)
                async with bursts() as seen:
                    try:
                        a = await asyncio.wait_for(wire.ask("GET", path, None, {"Accept": "text/html" if not path.startswith("/v1") else "application/json"}), 20)
                    except TimeoutError: pass
                longest.append(round(seen.longest*1000,1))
            print(f"{path:40} {a.status} {len(a.body):9} {min(longest)} {longest}", "!!!" if min(longest) > 20 else "", file=out, flush=True)
            if path == "/v1/events": break
        wire.close()

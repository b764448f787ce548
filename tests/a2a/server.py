#!/usr/bin/env python3
"""An A2A 1.0 agent on the package a2a-sdk: JSON-RPC at /rpc, HTTP+JSON at /rest. Prints its port first, then what it gets."""

import socket
import sys

import uvicorn
from a2a.helpers.proto_helpers import get_message_text, new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface
from starlette.applications import Starlette


class Weather(AgentExecutor):
    """Says what it does, hands in a forecast in two parts, and counts the prompts of a context."""

    def __init__(self):
        self.contexts = []

    async def execute(self, context, queue):
        self.contexts.append(context.context_id)
        print("context", context.context_id, "task", context.task_id, flush=True)
        if context.current_task is None:
            await queue.enqueue_event(new_task_from_user_message(context.message))
        work = TaskUpdater(queue, context.task_id, context.context_id)
        said = work.new_agent_message([new_text_part("Asking the satellite")])
        await work.start_work(said)
        prompt = get_message_text(context.message)
        await work.add_artifact([new_text_part(f"For {prompt}: rain ")], artifact_id="a", name="forecast")
        await work.add_artifact([new_text_part("until noon")], artifact_id="a", name="forecast", append=True)
        count = self.contexts.count(context.context_id)
        await work.complete(work.new_agent_message([new_text_part(f"prompt {count} of this context")]))

    async def cancel(self, context, queue):
        print("cancel", context.task_id, flush=True)
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


def main(binding):
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}/{'rest' if binding == 'HTTP+JSON' else 'rpc'}"
    card = AgentCard(
        name="Weather",
        description="Knows the weather.",
        version="1.0.0",
        supported_interfaces=[AgentInterface(url=url, protocol_binding=binding, protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
    )
    handler = DefaultRequestHandler(agent_executor=Weather(), task_store=InMemoryTaskStore(), agent_card=card)
    routes = create_agent_card_routes(card) + create_jsonrpc_routes(handler, "/rpc")
    routes += create_rest_routes(handler, path_prefix="/rest")
    print("port", port, flush=True)
    uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1])

#!/usr/bin/env python3
"""A "client" for the conformance suite that is really a gateway with a client in front: as_client.py GATEWAY CLIENT… URL

Starts the gateway with the suite's server at URL behind it, runs the client command with the gateway's address, ends the gateway.
"""
import os
import subprocess
import sys

from harness.gateway import Gateway

program, *client, url = sys.argv[1:]
with Gateway(program, {"suite": {"url": url}}, name=f"outbound-{os.getpid()}") as gateway:
    # By name and not by number: that is how clients on one machine mostly write it.
    code = subprocess.run([*client, gateway.url("suite").replace("127.0.0.1", "localhost")]).returncode
sys.exit(code)

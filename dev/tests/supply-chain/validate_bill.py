"""Whether bills of materials, one file each, are what the schema of CycloneDX of their version asks for, unknown fields included."""

import json
import pathlib
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

faults = {}
for name in sys.argv[1:]:
    text = pathlib.Path(name).read_text()
    fault = JsonStrictValidator(SchemaVersion.from_version(json.loads(text)["specVersion"])).validate_str(text)
    if fault:
        faults[name] = str(fault)
json.dump(faults, sys.stdout)

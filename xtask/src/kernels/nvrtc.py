"""Compiles one CUDA C++ file to PTX with NVRTC: nvrtc.py LIBRARY SOURCE OUTPUT FLAG...

The library's functions are C; calling them from here keeps xtask free of unsafe code. Prints what
the compiler has to say; the exit status is 1 if it refused.
"""

import ctypes
import sys


def main(library, source, output, flags):
    nvrtc = ctypes.CDLL(library)
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p

    def check(status, doing):
        if status != 0:
            sys.exit(f"{doing}: {nvrtc.nvrtcGetErrorString(status).decode()}")

    def text(measure, fill):
        size = ctypes.c_size_t()
        check(measure(program, ctypes.byref(size)), "length of a text")
        buffer = ctypes.create_string_buffer(size.value)
        check(fill(program, buffer), "text")
        return buffer.value.decode()

    program = ctypes.c_void_p()
    with open(source, "rb") as file:
        code = file.read()
    check(
        nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), code, source.encode(), 0, None, None
        ),
        "program",
    )
    words = (ctypes.c_char_p * len(flags))(*[flag.encode() for flag in flags])
    status = nvrtc.nvrtcCompileProgram(program, len(flags), words)
    log = text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).strip()
    if log:
        print(log, file=sys.stdout if status == 0 else sys.stderr)
    check(status, "compilation")
    with open(output, "w", newline="\n") as file:
        file.write(text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX))


main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])

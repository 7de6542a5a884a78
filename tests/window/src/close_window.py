"""Asks a window to close, as the window manager does when a person clicks its close button.

    python3 close_window.py TITLE

There is no window manager on the screen of a test, so the message is sent by hand. Ends with 1
if no window has that title.
"""
import ctypes as c
import sys

x = c.CDLL("libX11.so.6")
Window = Atom = c.c_ulong
Display = c.c_void_p


class ClientMessage(c.Structure):
    _fields_ = [
        ("type", c.c_int), ("serial", c.c_ulong), ("send_event", c.c_int), ("display", Display),
        ("window", Window), ("message_type", Atom), ("format", c.c_int), ("data", c.c_long * 5),
        ("padding", c.c_long * 12),
    ]


x.XOpenDisplay.restype = Display
x.XOpenDisplay.argtypes = [c.c_char_p]
x.XDefaultRootWindow.restype = Window
x.XDefaultRootWindow.argtypes = [Display]
x.XInternAtom.restype = Atom
x.XInternAtom.argtypes = [Display, c.c_char_p, c.c_int]
x.XQueryTree.argtypes = [Display, Window, c.POINTER(Window), c.POINTER(Window),
                         c.POINTER(c.POINTER(Window)), c.POINTER(c.c_uint)]
x.XFetchName.argtypes = [Display, Window, c.POINTER(c.c_char_p)]
x.XSendEvent.argtypes = [Display, Window, c.c_int, c.c_long, c.POINTER(ClientMessage)]
x.XCloseDisplay.argtypes = [Display]
# A window may go away between being listed and being asked.
handler = c.CFUNCTYPE(c.c_int, Display, c.c_void_p)(lambda *_: 0)
x.XSetErrorHandler(handler)


def below(display, window):
    """Every window, from the root down."""
    yield window
    root, parent, number = Window(), Window(), c.c_uint()
    children = c.POINTER(Window)()
    if x.XQueryTree(display, window, root, parent, children, number):
        for at in range(number.value):
            yield from below(display, children[at])


def main(title):
    display = x.XOpenDisplay(None)
    if not display:
        sys.exit("there is no screen")
    found = 0
    for window in below(display, x.XDefaultRootWindow(display)):
        name = c.c_char_p()
        x.XFetchName(display, window, name)
        # The title is that of the conversation, with the program's name at its end.
        if name.value is None or not name.value.decode("utf-8", "replace").endswith(title):
            continue
        message = ClientMessage(type=33, window=window, format=32)
        message.message_type = x.XInternAtom(display, b"WM_PROTOCOLS", 0)
        message.data[0] = x.XInternAtom(display, b"WM_DELETE_WINDOW", 0)
        x.XSendEvent(display, window, 0, 0, message)
        found += 1
    x.XCloseDisplay(display)
    sys.exit(0 if found else 1)


main(sys.argv[1])

"""Ferry's additions to MPI that programs on GPUs need (include/ferry/mpi/mpix.h: matches, queues,
partitions), in Fortran: the module ferry_mpix and the procedures behind it, mpix_match_ and the
like. Each has an interface with INTEGER for a request, as `mpi` has it, and one with
TYPE(MPI_Request), as mpi_f08 has it (mpix_match_f08_, a second name).

`ierror` is optional in both. Queues are integers of 8 bytes, and partitions count from 0 as in
MPI_Pready. Neither the partitioned collectives nor Prequests are here: kernels use those.
"""

from text import lines

# name: arguments of Fortran and C, in one order. Kinds: request (an address in C), value (a request
# that C only reads), match (made), requests (count of them), queue, new_queue, int, out, outs
# (incount of them), flag, stream.
PROCEDURES = {
    "Match": "request:request",
    "Matchall": "count:int requests:requests",
    "Imatch": "request:request match:match",
    "Imatchall": "count:int requests:requests match:match",
    "Is_matched": "request:value flag:flag",
    "Queue_init": "queue:new_queue type:type stream:stream",
    "Queue_free": "queue:old_queue",
    "Queue_wait": "queue:queue",
    "Enqueue_start": "queue:queue request:request",
    "Enqueue_startall": "queue:queue count:int requests:requests",
    "Enqueue_wait": "queue:queue request:request",
    "Enqueue_waitall": "queue:queue count:int requests:requests",
    "Enqueue_pready": "queue:queue partition_low:int partition_high:int request:value",
    "Enqueue_pbuf_prepare": "queue:queue request:request",
    "Enqueue_pbuf_prepare_all": "queue:queue count:int requests:requests",
    "Pbuf_prepare": "request:value",
    "Pbuf_prepare_all": "count:int requests:requests",
    "Parrived_any": "request:value partition:out flag:flag",
    "Parrived_some": "request:value incount:int outcount:out partitions:outs",
}
_QUEUE_TYPES = ("FERRY", "CUDA", "HIP", "LEVEL_ZERO")  # from 0 on, as in mpix.h

_QUEUE = "INTEGER(KIND=MPIX_QUEUE_KIND)"
_REQUESTS = ("request", "value", "match", "requests")
_DECLARED = {
    "request": "{handle}, INTENT(INOUT) :: {name}", "value": "{handle}, INTENT(IN) :: {name}",
    "match": "{handle}, INTENT(OUT) :: {name}",
    "requests": "{handle}, INTENT(INOUT) :: {name}(count)",
    "queue": _QUEUE + ", INTENT(IN) :: {name}", "new_queue": _QUEUE + ", INTENT(OUT) :: {name}",
    "old_queue": _QUEUE + ", INTENT(INOUT) :: {name}", "int": "INTEGER, INTENT(IN) :: {name}",
    "type": "INTEGER, INTENT(IN) :: {name}", "out": "INTEGER, INTENT(OUT) :: {name}",
    "outs": "INTEGER, INTENT(OUT) :: {name}(incount)", "flag": "LOGICAL, INTENT(OUT) :: {name}",
    "stream": "TYPE(C_PTR), INTENT(IN) :: {name}",
}


def _arguments(name):
    return [tuple(one.split(":")) for one in PROCEDURES[name].split()]


def _has_request(name):
    return any(kind in _REQUESTS for _, kind in _arguments(name))


def _interface(name, token, handle):
    arguments = _arguments(name)
    text = lines(f"SUBROUTINE MPIX_{name}{token}({','.join(one for one, _ in arguments)},ierror)")
    text += lines("IMPORT")
    for argument, kind in sorted(arguments, key=lambda one: one[1] in ("requests", "outs")):
        text += lines(_DECLARED[kind].format(handle=handle, name=argument))
    return text + lines("INTEGER, OPTIONAL, INTENT(OUT) :: ierror") + lines("END SUBROUTINE")


def module():
    text = lines("MODULE ferry_mpix")
    text += lines("USE, INTRINSIC :: ISO_C_BINDING, ONLY : C_INT64_T, C_PTR")
    text += lines("USE FERRY_MPI_TYPES, ONLY : MPI_Request")
    text += lines("IMPLICIT NONE") + lines("PRIVATE :: C_INT64_T, C_PTR, MPI_Request")
    text += lines("INTEGER, PARAMETER :: MPIX_QUEUE_KIND = C_INT64_T")
    text += lines(f"{_QUEUE}, PARAMETER :: MPIX_QUEUE_NULL = 0")
    for number, name in enumerate(_QUEUE_TYPES):
        text += lines(f"INTEGER, PARAMETER :: MPIX_QUEUE_{name} = {number}")
    for name in PROCEDURES:
        text += lines(f"INTERFACE MPIX_{name}") + _interface(name, "", "INTEGER")
        if _has_request(name):
            text += _interface(name, "_f08", "TYPE(MPI_Request)")
        text += lines("END INTERFACE")
    return {"ferry_mpix.f90": text + lines("END MODULE ferry_mpix")}


_TYPES = {"queue": "const MPIX_Queue*", "new_queue": "MPIX_Queue*", "old_queue": "MPIX_Queue*",
          "stream": "const void*"}


def _procedure(name):
    before, given, after = "", [], ""
    for argument, kind in _arguments(name):
        local = f"c_{argument}"
        if kind == "request":
            before += f"  MPI_Request {local} = HandleOf<MPI_Request>(*{argument});\n"
            given.append(f"&{local}")
            after += f"  *{argument} = NumberOf({local});\n"
        elif kind == "match":
            before += f"  MPI_Request {local} = MPI_REQUEST_NULL;\n"
            given.append(f"&{local}")
            after += f"  *{argument} = NumberOf({local});\n"
        elif kind == "requests":
            before += f"  Handles<MPI_Request> {local}({argument}, *count);\n"
            given.append(f"{local}.get()")
            after += f"  {local}.Store({argument});\n"
        elif kind == "flag":
            before += f"  int {local} = 0;\n"
            given.append(f"&{local}")
            after += f"  *{argument} = Logical({local});\n"
        elif kind == "value":
            given.append(f"HandleOf<MPI_Request>(*{argument})")
        elif kind == "type":
            given.append(f"static_cast<MPIX_Queue_type>(*{argument})")
        elif kind in ("queue", "int"):
            given.append(f"*{argument}")
        else:
            given.append(argument)
    parameters = [f"{_TYPES.get(kind, 'int*')} {argument}" for argument, kind in _arguments(name)]
    low = f"mpix_{name.lower()}"
    text = f'extern "C" FERRY_SHOWN void {low}_({", ".join(parameters)}, int* ierror) {{\n{before}'
    text += f"  const int code = MPIX_{name}({', '.join(given)});\n{after}  Give(ierror, code);\n}}\n"
    text += f'FERRY_NAMES("{low}", "{low.upper()}", "{low}_");\n'
    return text + (f'FERRY_NAME("{low}_f08_", "{low}_");\n' if _has_request(name) else "")


def source():
    text = ("// Made by mpi/fortran/generate.py: the Fortran procedures of mpi/fortran/mpix.py.\n"
            "#include <mpix.h>\n\n#include \"mpi/fortran/binding.h\"\n\nnamespace ferry::fortran {\n\n")
    return {"calls_mpix.cc": text + "\n".join(_procedure(name) for name in PROCEDURES) +
                             "\n}  // namespace ferry::fortran\n"}


def names():
    """The names that the library shows of them."""
    found = []
    for name in PROCEDURES:
        low = f"mpix_{name.lower()}"
        found += [low, f"{low}_", f"{low}__", low.upper()]
        found += [f"{low}_f08_"] if _has_request(name) else []
    return found

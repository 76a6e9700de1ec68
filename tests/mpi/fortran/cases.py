#!/usr/bin/env python3
"""cases.py collectives|limits|partitioned|typed_collectives|typed_partitioned|names|typed_calls FOLDER: writes
a Fortran program that calls procedures of one kind.

collectives: each in its blocking, nonblocking and persistent form; partitioned: the partitioned ones
of Ferry's; limits: as many operations and error handlers as there may be, and one more; typed_...: the
same over mpi_f08. names: no program, but the names that the library has to
show. typed_calls: a call of each procedure of mpi_f08, with and without large counts, which has to
compile and to be linked; nothing is called when it runs. FOLDER is mpi/fortran, with the table.
"""

import sys

# Name, arguments without those that every form has at its end, what comes before, what must be true.
# Of `n` ranks, each sends s and receives r; `comm` is all of them.
I = "MPI_INTEGER"
COLLECTIVES = [
    ("Barrier", "", "", ".true."),
    ("Bcast", f"r, 2, {I}, 1", "if (rank == 1) r(1:2) = [5, 6]", "all(r(1:2) == [5, 6])"),
    ("Gather", f"s, 1, {I}, r, 1, {I}, 0", "s(1) = rank",
     "rank /= 0 .or. all(r(1:n) == every)"),
    ("Gatherv", f"s, 1, {I}, r, ones, twice, {I}, 0", "s(1) = rank",
     "rank /= 0 .or. all(r(1:2*n:2) == every)"),
    ("Scatter", f"s, 1, {I}, r, 1, {I}, 0", "s(1:n) = every + 3", "r(1) == rank + 3"),
    ("Scatterv", f"s, ones, twice, {I}, r, 1, {I}, 0", "s(1:2*n:2) = every + 3", "r(1) == rank + 3"),
    ("Allgather", f"s, 1, {I}, r, 1, {I}", "s(1) = rank", "all(r(1:n) == every)"),
    ("Allgather", f"MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, 1, {I}", "r(rank + 1) = rank",
     "all(r(1:n) == every)"),
    ("Allgatherv", f"s, 1, {I}, r, ones, twice, {I}", "s(1) = rank", "all(r(1:2*n:2) == every)"),
    ("Alltoall", f"s, 1, {I}, r, 1, {I}", "s(1:n) = 10 * rank + every",
     "all(r(1:n) == 10 * every + rank)"),
    ("Alltoallv", f"s, ones, twice, {I}, r, ones, twice, {I}", "s(1:2*n:2) = 10 * rank + every",
     "all(r(1:2*n:2) == 10 * every + rank)"),
    ("Alltoallw", "s, ones, bytes, types, r, ones, bytes, types", "s(1:n) = 10 * rank + every",
     "all(r(1:n) == 10 * every + rank)"),
    ("Alltoallw", "MPI_IN_PLACE, ones, bytes, unread, r, ones, bytes, types",
     "r(1:n) = 10 * rank + every", "all(r(1:n) == 10 * every + rank)"),
    ("Reduce", f"s, r, 1, {I}, MPI_SUM, 0", "s(1) = rank + 1",
     "rank /= 0 .or. r(1) == n * (n + 1) / 2"),
    ("Allreduce", f"s, r, 1, {I}, MPI_MAX", "s(1) = rank", "r(1) == n - 1"),
    ("Allreduce", f"MPI_IN_PLACE, r, 1, {I}, MPI_SUM", "r(1) = rank + 1", "r(1) == n * (n + 1) / 2"),
    ("Allreduce", f"s, r, 2, {I}, own_op", "s(1:2) = [rank, 1]", "all(r(1:2) == [n - 1, n])"),
    ("Reduce_scatter_block", f"s, r, 1, {I}, MPI_SUM", "s(1:n) = every", "r(1) == n * rank"),
    ("Reduce_scatter", f"s, r, ones, {I}, MPI_SUM", "s(1:n) = every", "r(1) == n * rank"),
    ("Scan", f"s, r, 1, {I}, MPI_SUM", "s(1) = rank", "r(1) == rank * (rank + 1) / 2"),
    ("Exscan", f"s, r, 1, {I}, MPI_SUM", "s(1) = rank", "rank == 0 .or. r(1) == rank * (rank - 1) / 2"),
    # On a ring: two neighbours, in the order -, +.
    ("Neighbor_allgather", f"s, 1, {I}, r, 1, {I}", "s(1) = rank", "all(r(1:2) == [left, right])"),
    ("Neighbor_allgatherv", f"s, 1, {I}, r, ones, twice, {I}", "s(1) = rank",
     "all(r(1:3:2) == [left, right])"),
    ("Neighbor_alltoall", f"s, 1, {I}, r, 1, {I}", "s(1:2) = rank", "all(r(1:2) == [left, right])"),
    ("Neighbor_alltoallv", f"s, ones, twice, {I}, r, ones, twice, {I}", "s(1:3) = rank",
     "all(r(1:3:2) == [left, right])"),
    ("Neighbor_alltoallw", "s, ones, places, types, r, ones, places, types", "s(1:2) = rank",
     "all(r(1:2) == [left, right])"),
]

HEAD = """! Made by tests/mpi/fortran/cases.py.
program {name}
  USE_LINE
  use checks
  implicit none
  INCLUDE_LINE
"""


def _call(name, arguments, prefix="MPI_"):
    line = f"  call {prefix}{name}({arguments})"
    cut = line.rfind(", ", 0, 96) + 1
    return line if len(line) < 100 else line[:cut] + " &\n   " + line[cut:]


# The declarations of what has other types in mpi_f08.
_UNTYPED = """\
  integer :: comm, ring, own_op, request, types(most), unread(most)
  external :: larger_then_sum
"""
_TYPED = """\
  type(MPI_Comm) :: comm, ring
  type(MPI_Op) :: own_op
  type(MPI_Request) :: request
  type(MPI_Datatype) :: types(most), unread(most)
"""


def collectives(is_typed):
    head = HEAD.format(name="collectives")
    if is_typed:
        head = head.replace("USE_LINE", "use mpi_f08").replace("  INCLUDE_LINE\n", "")
    text = head + """
  integer, parameter :: most = 8
  integer :: ierr, rank, n, i, left, right
  integer, asynchronous :: s(2 * most), r(2 * most)
  integer, allocatable :: every(:)
  integer :: ones(most), twice(most), bytes(most)
  integer(MPI_ADDRESS_KIND) :: places(most)
""" + (_TYPED if is_typed else _UNTYPED) + """\
  call MPI_Init(ierr)
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank, ierr)
  call MPI_Comm_size(comm, n, ierr)
  every = [(i, i = 0, n - 1)]
  ones = 1
  twice = [(2 * i, i = 0, most - 1)]
  bytes = [(4 * i, i = 0, most - 1)]
  places = bytes
  types = MPI_INTEGER
  unread""" + ("%MPI_VAL" if is_typed else "") + """ = -77
  call MPI_Cart_create(comm, 1, [n], [.true.], .false., ring, ierr)
  call MPI_Cart_shift(ring, 0, 1, left, right, ierr)
  call MPI_Op_create(larger_then_sum, .true., own_op, ierr)
"""
    bodies = ""
    for number, (name, arguments, before, truth) in enumerate(COLLECTIVES):
        first = f"{arguments}, " if arguments else ""
        comm = "ring" if name.startswith("Neighbor") else "comm"
        for form, call in (
                ("", [_call(name, f"{first}{comm}, ierr")]),
                ("I", [_call(f"I{name.lower()}", f"{first}{comm}, request, ierr"),
                       "  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)"]),
                ("init", [_call(f"{name}_init", f"{first}{comm}, MPI_INFO_NULL, request, ierr"),
                          "  call MPI_Start(request, ierr)",
                          "  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)",
                          "  call MPI_Request_free(request, ierr)"])):
            case = f"case_{number}_{form or 'b'}"
            text += f"  call {case}\n"
            bodies += f"subroutine {case}\n  s = -1\n  r = -1\n  {before or 'continue'}\n"
            bodies += "\n".join(call) + "\n"
            bodies += f"  call check(ierr == 0, 'MPI_{name}, {form or 'blocking'}: result')\n"
            bodies += f"  call check({truth}, &\n             'MPI_{name}, {form or 'blocking'}')\n"
            bodies += "end subroutine\n"
    text += f"""  s(1) = 4
  r(1) = 3
  call MPI_Reduce_local(s, r, 1, MPI_INTEGER, MPI_SUM, ierr)
  call check(r(1) == 7, 'MPI_Reduce_local')
  call logicals
  call MPI_Op_free(own_op, ierr)
  call check(own_op == MPI_OP_NULL, 'MPI_Op_free')
  call report(rank)
  call MPI_Finalize(ierr)
contains
"""
    return text + bodies + """
! Every value with its lowest bit set is true.
subroutine logicals
  integer :: truth(1)
  logical :: mine, all_true
  mine = .true.
  call MPI_Allreduce(mine, all_true, 1, MPI_LOGICAL, MPI_LAND, comm, ierr)
  call check(all_true, 'MPI_LAND')
  truth = merge(-1, 1, rank == 0)
  call MPI_Allreduce(truth, all_true, 1, MPI_LOGICAL, MPI_LAND, comm, ierr)
  call check(all_true, 'MPI_LAND of -1 and 1')
  call MPI_Allreduce(truth, all_true, 1, MPI_LOGICAL, MPI_LXOR, comm, ierr)
  call check(all_true .eqv. mod(n, 2) == 1, 'MPI_LXOR of -1 and 1')
  mine = rank == 0
  call MPI_Allreduce(mine, all_true, 1, MPI_LOGICAL, MPI_LOR, comm, ierr)
  call check(all_true, 'MPI_LOR')
  call MPI_Op_commutative(own_op, mine, ierr)
  call check(mine, 'MPI_Op_commutative')
end subroutine
""" + (_OPERATION_TYPED if is_typed else _OPERATION)


# An operation of the program's: the first element is a maximum, all others are sums.
_OPERATION = """\
end program

subroutine larger_then_sum(in, inout, length, datatype)
  USE_LINE
  implicit none
  INCLUDE_LINE
  integer :: length, datatype
  integer :: in(length), inout(length)
  if (datatype /= MPI_INTEGER) return
  inout(1) = max(in(1), inout(1))
  inout(2:) = in(2:) + inout(2:)
end subroutine
"""
_OPERATION_TYPED = """\
subroutine larger_then_sum(invec, inoutvec, length, datatype)
  use, intrinsic :: iso_c_binding
  type(c_ptr), value :: invec, inoutvec
  integer :: length
  type(MPI_Datatype) :: datatype
  integer, pointer :: in(:), inout(:)
  if (datatype /= MPI_INTEGER) return
  call c_f_pointer(invec, in, [length])
  call c_f_pointer(inoutvec, inout, [length])
  inout(1) = max(in(1), inout(1))
  inout(2:) = in(2:) + inout(2:)
end subroutine
end program
"""


# ---- Partitioned collectives ---------------------------------------------------------------------

# Name, arguments, which ranks ready and which get partitions, what comes before a round, what must be
# true after it. A block has 20 elements, those of rank j are of(j); with places, block i lies at 24 * i.
_ALL = ".true."
_LAST = "rank == last"
_SPREAD = "all([(r(24 * i + 1:24 * i + 20) == {}, i = 0, n - 1)])"
PARTITIONED = [
    ("Pbcast", f"r, parts, each, {I}, last", _LAST, "rank /= last",
     "if (rank == last) r(:20) = of(last)", "all(r(:20) == of(last))"),
    ("Preduce", f"s, r, parts, each, {I}, MPI_SUM, last", _ALL, _LAST, "s(:20) = of(rank)",
     "rank /= last .or. all(r(:20) == sum_of(n))"),
    ("Pallreduce", f"s, r, parts, each, {I}, MPI_SUM", _ALL, _ALL, "s(:20) = of(rank)",
     "all(r(:20) == sum_of(n))"),
    ("Pallreduce", f"MPI_IN_PLACE, r, parts, each, {I}, MPI_SUM", _ALL, _ALL, "r(:20) = of(rank)",
     "all(r(:20) == sum_of(n))"),
    ("Pallgather", f"s, r, parts, each, {I}", _ALL, _ALL, "s(:20) = of(rank)",
     "all(r(:20 * n) == [(of(i), i = 0, n - 1)])"),
    ("Palltoall", f"s, r, parts, each, {I}", _ALL, _ALL,
     "s(:20 * n) = [(of(i) + 1000 * rank, i = 0, n - 1)]",
     "all(r(:20 * n) == [(of(rank) + 1000 * i, i = 0, n - 1)])"),
    ("Preduce_scatter_block", f"s, r, parts, each, {I}, MPI_SUM", _ALL, _ALL,
     "s(:20 * n) = [(of(i), i = 0, n - 1)]", "all(r(:20) == n * of(rank))"),
    ("Pgather", f"s, r, parts, each, {I}, last", _ALL, _LAST, "s(:20) = of(rank)",
     "rank /= last .or. all(r(:20 * n) == [(of(i), i = 0, n - 1)])"),
    ("Pscatter", f"s, r, parts, each, {I}, last", _LAST, _ALL,
     "if (rank == last) s(:20 * n) = [(of(i), i = 0, n - 1)]", "all(r(:20) == of(rank))"),
    ("Pscan", f"s, r, parts, each, {I}, MPI_SUM", _ALL, _ALL, "s(:20) = of(rank)",
     "all(r(:20) == sum_of(rank + 1))"),
    ("Pexscan", f"s, r, parts, each, {I}, MPI_SUM", _ALL, _ALL, "s(:20) = of(rank)",
     "rank == 0 .or. all(r(:20) == sum_of(rank))"),
    ("Pbarrier", "parts", _ALL, _ALL, "", _ALL),
    ("Pgatherv", f"s, parts, each, {I}, r, counts, places, {I}, last", _ALL, _LAST,
     "s(:20) = of(rank)", "rank /= last .or. " + _SPREAD.format("of(i)")),
    ("Pscatterv", f"s, parts, counts, places, {I}, r, each, {I}, last", _LAST, _ALL,
     "if (rank == last) s(:24 * n) = [(of(i), 0, 0, 0, 0, i = 0, n - 1)]", "all(r(:20) == of(rank))"),
    ("Pallgatherv", f"s, parts, each, {I}, r, counts, places, {I}", _ALL, _ALL, "s(:20) = of(rank)",
     _SPREAD.format("of(i)")),
    ("Palltoallv", f"s, parts, counts, places, {I}, r, counts, places, {I}", _ALL, _ALL,
     "s(:24 * n) = [(of(i) + 1000 * rank, 0, 0, 0, 0, i = 0, n - 1)]",
     _SPREAD.format("of(rank) + 1000 * i")),
    ("Palltoallw", "s, parts, counts, bytes, types, r, counts, bytes, types", _ALL, _ALL,
     "s(:24 * n) = [(of(i) + 1000 * rank, 0, 0, 0, 0, i = 0, n - 1)]",
     _SPREAD.format("of(rank) + 1000 * i")),
    ("Palltoallw", "MPI_IN_PLACE, parts, counts, bytes, unread, r, counts, bytes, types", _ALL, _ALL,
     "r(:24 * n) = [(of(i) + 1000 * rank, 0, 0, 0, 0, i = 0, n - 1)]",
     _SPREAD.format("of(rank) + 1000 * i")),
    ("Preduce_scatter", f"s, r, parts, counts, {I}, MPI_SUM", _ALL, _ALL,
     "s(:20 * n) = [(of(i), i = 0, n - 1)]", "all(r(:20) == n * of(rank))"),
    ("Pneighbor_allgather", f"s, r, parts, each, {I}", _ALL, _ALL, "s(:20) = of(rank)",
     "all(r(:40) == [of(left), of(right)])"),
    ("Pneighbor_alltoall", f"s, r, parts, each, {I}", _ALL, _ALL, "s(:40) = [of(rank), of(rank)]",
     "all(r(:40) == [of(left), of(right)])"),
    ("Pneighbor_allgatherv", f"s, parts, each, {I}, r, counts, places, {I}", _ALL, _ALL,
     "s(:20) = of(rank)", "all(r(:20) == of(left)) .and. all(r(25:44) == of(right))"),
    ("Pneighbor_alltoallv", f"s, parts, counts, places, {I}, r, counts, places, {I}", _ALL, _ALL,
     "s(:44) = [of(rank), 0, 0, 0, 0, of(rank)]",
     "all(r(:20) == of(left)) .and. all(r(25:44) == of(right))"),
    ("Pneighbor_alltoallw", "s, parts, counts, bytes, types, r, counts, bytes, types", _ALL, _ALL,
     "s(:44) = [of(rank), 0, 0, 0, 0, of(rank)]",
     "all(r(:20) == of(left)) .and. all(r(25:44) == of(right))"),
    # A ring: each piece goes once around to be summed, and once more as it is.
    ("Pschedule", f"s, r, parts, each, {I}, n, 2 * (n - 1), ones, sources, arriving, ops, ones, "
     "destinations, leaving", _ALL, _ALL, "s(:20) = of(rank)", "all(r(:20) == sum_of(n))"),
]

_OF_PARTITIONS = """\
! Readies the last partition first, and waits for each that arrives.
subroutine go(readies, gets)
  logical, intent(in) :: readies, gets
  integer :: partition
  logical :: flag
  call MPI_Start(request, ierr)
  if (readies) then
    do partition = parts - 1, 0, -1
      call MPI_Pready(partition, request, ierr)
    end do
  end if
  if (gets) then
    do partition = 0, parts - 1
      flag = .false.
      do while (.not. flag)
        call MPI_Parrived(request, partition, flag, ierr)
      end do
    end do
  end if
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call check(ierr == 0, 'MPI_Wait')
end subroutine

pure function of(owner) result(block)
  integer, intent(in) :: owner
  integer :: block(20), place
  block = [(100 * owner + place, place = 1, 20)]
end function

! The sum of the blocks of that many ranks.
pure function sum_of(ranks) result(block)
  integer, intent(in) :: ranks
  integer :: block(20), owner
  block = 0
  do owner = 0, ranks - 1
    block = block + of(owner)
  end do
end function
end program
"""


def partitioned(is_typed):
    head = HEAD.format(name="partitioned")
    if is_typed:
        head = head.replace("USE_LINE", "use mpi_f08").replace("  INCLUDE_LINE\n", "")
    types = _TYPED if is_typed else _UNTYPED.replace("  external :: larger_then_sum\n", "")
    types = types.replace("own_op", "ops(2 * most)")
    text = head.replace("  use checks", "  use ferry_mpix\n  use checks") + """
  integer, parameter :: most = 8, parts = 4
  integer(MPI_COUNT_KIND), parameter :: each = 5
  integer :: ierr, rank, n, i, last, left, right, round
  integer, asynchronous :: s(24 * most), r(24 * most)
  integer(MPI_COUNT_KIND) :: counts(most)
  integer(MPI_ADDRESS_KIND) :: places(most), bytes(most)
  integer :: ones(2 * most), sources(2 * most), arriving(2 * most), destinations(2 * most), &
             leaving(2 * most)
""" + types + """\
  call MPI_Init(ierr)
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank, ierr)
  call MPI_Comm_size(comm, n, ierr)
  last = n - 1
  counts = each
  places = [(24 * i, i = 0, most - 1)]
  bytes = 4 * places
  types = MPI_INTEGER
  unread""" + ("%MPI_VAL" if is_typed else "") + """ = -77
  call MPI_Cart_create(comm, 1, [n], [.true.], .false., ring, ierr)
  call MPI_Cart_shift(ring, 0, 1, left, right, ierr)
  ones = 1
  sources = modulo(rank - 1, n)
  destinations = modulo(rank + 1, n)
  leaving = [(modulo(rank - i, n), i = 0, 2 * most - 1)]
  arriving = [(modulo(rank - i - 1, n), i = 0, 2 * most - 1)]
  ops = MPI_OP_NULL
  ops(:n - 1) = MPI_SUM
"""
    bodies = ""
    for number, (name, arguments, readies, gets, before, truth) in enumerate(PARTITIONED):
        comm = "ring" if name.startswith("Pneighbor") else "comm"
        call = _call(f"{name}_init", f"{arguments}, {comm}, MPI_INFO_NULL, request, ierr", "MPIX_")
        text += f"  call case_{number}\n"
        bodies += f"""\
subroutine case_{number}
{call}
  call check(ierr == 0, 'MPIX_{name}_init: result')
  do round = 1, 2
    s = -1
    r = -1
    {before or 'continue'}
    call go({readies}, {gets})
    call check({truth}, &
               'MPIX_{name}_init')
  end do
  call MPI_Request_free(request, ierr)
end subroutine
"""
    return text + """  call report(rank)
  call MPI_Finalize(ierr)
contains
""" + bodies + _OF_PARTITIONS


# ---- A call of each procedure of mpi_f08 --------------------------------------------------------

# Variables that may be handed over for arguments of a kind.
_VARIABLES = {"int": "integer :: an_int", "index": "integer :: an_index",
              "weights": "integer :: a_weights", "logical": "logical :: a_logical",
              "string": "character(8) :: a_string", "strings": "character(8) :: a_strings(2)",
              "strings2": "character(8) :: a_strings2(2, 2)",
              "aint": "integer(MPI_ADDRESS_KIND) :: an_aint",
              "count": "integer(MPI_COUNT_KIND) :: a_count",
              "offset": "integer(MPI_OFFSET_KIND) :: an_offset", "address": "type(c_ptr) :: an_address",
              "detached": "type(c_ptr) :: a_detached", "status": "type(MPI_Status) :: a_status",
              "buffer": "integer, asynchronous :: a_buffer(8)"}


def typed_calls(f08, table):
    """Optional arguments are there in calls of MPI_x, and absent in those of PMPI_x."""
    text = "! Made by tests/mpi/fortran/cases.py.\nprogram typed_calls\n"
    text += "  use, intrinsic :: iso_c_binding\n  use mpi_f08\n  implicit none\n  integer :: ierr\n"
    arrays = "integer :: some_int(8), some_index(8), some_weights(8)\n  logical :: some_logical(8)\n"
    arrays += "  integer(MPI_ADDRESS_KIND) :: some_aint(8)\n  type(MPI_Status) :: some_status(8)\n"
    arrays += "  integer(MPI_COUNT_KIND) :: some_count(8)\n  integer :: ranges(3, 8)\n"
    text += "".join(f"  {one}\n" for one in _VARIABLES.values()) + f"  {arrays}"
    for kind in table.HANDLES:
        text += f"  type(MPI_{kind}) :: a_{kind}, some_{kind}(8)\n"
    for name, _ in f08.PROTOTYPES:
        text += f"  procedure(MPI_{name}), pointer :: a_{name} => null()\n"
    text += "  if (command_argument_count() == 0) then\n    print '(a)', 'rank 0: ok'\n    stop\n"
    text += "  end if\n"
    short = {one.split(" :: ")[1].split("(")[0]: kind for kind, one in _VARIABLES.items()}
    scalars = {kind: name for name, kind in short.items()}
    for procedure in f08.procedures():
        for large in (False, True) if f08.has_large(procedure) else (False,):
            given = []
            for one in procedure.form(large):
                if one.length == "3,n":
                    given.append("ranges")
                elif one.length and one.kind not in ("strings", "strings2"):
                    given.append(f"some_{one.kind}")
                else:
                    given.append(scalars.get(one.kind, f"a_{one.kind}"))
            name = procedure.name + ("_c" if large and procedure.name in f08.BY_NAME else "")
            for prefix in ("MPI_", "PMPI_"):
                last = ["ierr"] if prefix == "MPI_" and procedure.has_ierror else []
                call = f"{prefix}{name}({', '.join(given + last)})"
                result = {"": "call ", "double": "print *, ", "aint": "an_aint = "}[procedure.result]
                cut = call.rfind(", ", 0, 90) + 1
                text += f"  {result}" + (call if len(call) < 90 else
                                         call[:cut] + " &\n   " + call[cut:]) + "\n"
    return text + "end program\n"


# ---- More procedures than there may be ----------------------------------------------------------

_MOST = 256


def limits():
    """Each procedure adds a number of its own, or notes it."""
    text = HEAD.format(name="limits").split("program limits")[0]
    text += "module procedures\n  implicit none\n  integer :: noted = 0\ncontains\n"
    for number in range(_MOST + 1):
        text += (f"subroutine op_{number}(in, inout, n, datatype)\n  integer :: n, datatype, in(n), "
                 f"inout(n)\n  inout = in + inout + {number}\nend subroutine\n"
                 f"subroutine handler_{number}(comm, code)\n  integer :: comm, code\n"
                 f"  noted = {number}\nend subroutine\n")
    text += """end module
program limits
  use mpi
  use checks
  use procedures
  implicit none
  integer :: ierr, rank, class, op, handler, most_ops, most_handlers, length
  character(MPI_MAX_ERROR_STRING) :: message
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)
  most_ops = 0
  most_handlers = 0
"""
    for number in range(_MOST + 1):
        text += (f"  call MPI_Op_create(op_{number}, .true., op, ierr)\n  call used_op({number})\n"
                 f"  call MPI_Comm_create_errhandler(handler_{number}, handler, ierr)\n"
                 f"  call used_handler({number})\n")
    # One that is known already takes no place.
    return text + f"""  call MPI_Op_create(op_7, .true., op, ierr)
  call used_op(7)
  call check(most_ops == {_MOST} + 1 .and. most_handlers == {_MOST}, 'as many procedures as there may be')
  call report(rank)
  call MPI_Finalize(ierr)
contains
  subroutine used_op(number)
    integer, intent(in) :: number
    integer :: one(1), sum(1)
    if (number == {_MOST}) then
      call refused(op == MPI_OP_NULL)
      return
    end if
    one = 1
    sum = 1000
    call MPI_Reduce_local(one, sum, 1, MPI_INTEGER, op, ierr)
    call check(sum(1) == 1001 + number, 'an operation')
    call MPI_Op_free(op, ierr)
    most_ops = most_ops + 1
  end subroutine

  subroutine used_handler(number)
    integer, intent(in) :: number
    if (number == {_MOST}) then
      call refused(handler == MPI_ERRHANDLER_NULL)
      return
    end if
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler, ierr)
    noted = -1
    call MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER, ierr)
    call check(noted == number, 'an error handler')
    call MPI_Errhandler_free(handler, ierr)
    most_handlers = most_handlers + 1
  end subroutine

  subroutine refused(is_null)
    logical, intent(in) :: is_null
    call MPI_Error_string(ierr, message, length, class)
    call MPI_Error_class(ierr, class, ierr)
    call check(is_null .and. class == MPI_ERR_NO_MEM, 'one procedure too many')
    call check(index(message, 'at most {_MOST} procedures') > 0, 'what is said: '//trim(message))
  end subroutine
end program
"""


def main(arguments):
    if arguments[0] == "limits":
        print(limits(), end="")
        return
    if arguments[0] in ("collectives", "typed_collectives"):
        print(collectives(arguments[0] == "typed_collectives"), end="")
        return
    if arguments[0] in ("partitioned", "typed_partitioned"):
        print(partitioned(arguments[0] == "typed_partitioned"), end="")
        return
    sys.path.insert(0, arguments[1])
    import definitions  # pylint: disable=import-outside-toplevel
    import f08  # pylint: disable=import-outside-toplevel
    import mpix  # pylint: disable=import-outside-toplevel
    import table  # pylint: disable=import-outside-toplevel
    if arguments[0] == "typed_calls":
        print(typed_calls(f08, table), end="")
        return
    print("\n".join(definitions.names() + mpix.names()))


if __name__ == "__main__":
    main(sys.argv[1:])

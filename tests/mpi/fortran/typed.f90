! mpi_f08 between two ranks or more, by groups of procedures: typed handles and statuses, absent
! `ierror`, callbacks, large counts, and what crosses between the interfaces.
module callbacks
  use, intrinsic :: iso_c_binding
  use mpi_f08
  implicit none
  integer :: copies = 0, deletes = 0, handled = 0, stages(3) = 0
contains
  ! The first element is a maximum, all others are sums.
  subroutine larger_then_sum(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    call combine(invec, inoutvec, int(len, MPI_COUNT_KIND), datatype)
  end subroutine

  subroutine larger_then_sum_c(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    call combine(invec, inoutvec, len, datatype)
  end subroutine

  subroutine combine(invec, inoutvec, len, datatype)
    type(c_ptr), intent(in) :: invec, inoutvec
    integer(MPI_COUNT_KIND), intent(in) :: len
    type(MPI_Datatype), intent(in) :: datatype
    integer, pointer :: a(:), b(:)
    if (datatype /= MPI_INTEGER) return
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    b(1) = max(a(1), b(1))
    b(2:) = a(2:) + b(2:)
  end subroutine

  subroutine copy(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, &
                  ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    copies = copies + 1
    attribute_val_out = attribute_val_in + extra_state
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    deletes = deletes + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine on_comm(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    if (comm /= MPI_COMM_NULL) handled = error_code
  end subroutine

  subroutine on_win(win, error_code)
    type(MPI_Win) :: win
    integer :: error_code
    if (win /= MPI_WIN_NULL) handled = error_code
  end subroutine

  subroutine on_session(session, error_code)
    type(MPI_Session) :: session
    integer :: error_code
    if (session /= MPI_SESSION_NULL) handled = error_code
  end subroutine

  subroutine query_state(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    if (extra_state == 7) stages(1) = stages(1) + 1
    call MPI_Status_set_elements(status, MPI_INTEGER, 0)
    call MPI_Status_set_cancelled(status, .false.)
    status%MPI_SOURCE = 0
    status%MPI_TAG = 17
    ierror = MPI_SUCCESS
  end subroutine

  subroutine free_state(extra_state, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    if (extra_state == 7) stages(2) = stages(2) + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancel_state(extra_state, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    if (extra_state == 7 .and. .not. complete) stages(3) = stages(3) + 1
    ierror = MPI_SUCCESS
  end subroutine
end module

program typed
  use, intrinsic :: iso_c_binding
  use mpi_f08
  use callbacks
  use checks
  implicit none
  type(MPI_Comm) :: comm
  integer :: rank, n, left, right, ierr, i
  type(MPI_Request) :: requests(4), request
  type(MPI_Status) :: status, statuses(4)
  logical :: flag

  call MPI_Init()
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(comm, n)
  left = mod(rank + n - 1, n)
  right = mod(rank + 1, n)
  call what_it_is
  call messages
  call completion
  call collectives
  call datatypes
  call communicators
  call attributes
  call windows
  call strings
  call handlers
  call statuses_convert
  call buffered
  call partitioned
  call generalized
  call large_counts
  call report(rank)
  call MPI_Finalize()

contains

  subroutine what_it_is
    integer :: version, subversion
    type(MPI_Comm) :: none = MPI_COMM_NULL
    type(MPI_Datatype), parameter :: types(2) = [MPI_INTEGER, MPI_REAL]
    call check(MPI_SUBARRAYS_SUPPORTED .and. MPI_ASYNC_PROTECTS_NONBLOCKING, 'sections')
    call MPI_Get_version(version, subversion, ierr)
    call check(ierr == MPI_SUCCESS .and. version == MPI_VERSION, 'MPI_Get_version')
    call check(none == MPI_COMM_NULL .and. comm /= none, 'handles')
    call check(types(1) /= types(2) .and. MPI_COMM_WORLD%MPI_VAL == 257, 'constants')
    call MPI_Initialized(flag)
    call check(flag, 'MPI_Initialized')
    call check(MPI_Wtime() > 0 .and. PMPI_Wtick() > 0, 'MPI_Wtime')
    call check(MPI_Aint_diff(MPI_Aint_add(5_MPI_ADDRESS_KIND, 3_MPI_ADDRESS_KIND), &
                             2_MPI_ADDRESS_KIND) == 6, 'MPI_Aint_add')
  end subroutine

  subroutine messages
    integer, asynchronous :: a(8), b(8)
    character(5) :: text
    type(MPI_Message) :: message
    integer :: count
    a = [(100 * rank + i, i = 1, 8)]
    b = 0
    status%MPI_ERROR = 77
    call MPI_Sendrecv(a, 8, MPI_INTEGER, right, 3, b, 8, MPI_INTEGER, left, 3, comm, status)
    call check(all(b == [(100 * left + i, i = 1, 8)]), 'MPI_Sendrecv')
    call check(status%MPI_SOURCE == left .and. status%MPI_TAG == 3, 'a status')
    call check(status%MPI_ERROR == 77, 'MPI_ERROR stays as it is')
    call MPI_Get_count(status, MPI_INTEGER, count, ierr)
    call check(count == 8 .and. ierr == 0, 'MPI_Get_count')
    call PMPI_Sendrecv_replace(b, 8, MPI_INTEGER, left, 4, right, 4, comm, MPI_STATUS_IGNORE)
    call check(all(b == a), 'PMPI_Sendrecv_replace')
    text = 'none'
    call MPI_Isend('hello', 5, MPI_CHARACTER, right, 5, comm, request)
    call MPI_Mprobe(left, 5, comm, message, status)
    call MPI_Mrecv(text, 5, MPI_CHARACTER, message, status)
    call check(text == 'hello' .and. message == MPI_MESSAGE_NULL, 'MPI_Mrecv of a CHARACTER')
    call MPI_Wait(request, status)
    call check(request == MPI_REQUEST_NULL, 'MPI_Wait')
    call MPI_Send_init(a, 8, MPI_INTEGER, right, 6, comm, requests(1))
    call MPI_Recv_init(b, 8, MPI_INTEGER, left, 6, comm, requests(2), ierr)
    do i = 1, 2
      b = 0
      call MPI_Startall(2, requests)
      call MPI_Waitall(2, requests, statuses)
      call check(b(8) == 100 * left + 8 .and. statuses(2)%MPI_TAG == 6, 'MPI_Startall')
    end do
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine

  ! Indices count from 1.
  subroutine completion
    integer, asynchronous :: a(3), b(3)
    integer :: index, count, indices(3)
    a = [1, 2, 3]
    b = 0
    do i = 1, 3
      call MPI_Irecv(b(i), 1, MPI_INTEGER, left, 10 + i, comm, requests(i))
    end do
    call MPI_Testany(3, requests, index, flag, status)
    call check(.not. flag .and. index == MPI_UNDEFINED, 'MPI_Testany')
    call MPI_Barrier(comm)
    call MPI_Send(a(2), 1, MPI_INTEGER, right, 12, comm)
    call MPI_Waitany(3, requests, index, MPI_STATUS_IGNORE)
    call check(index == 2 .and. b(2) == 2, 'MPI_Waitany')
    call MPI_Barrier(comm)
    call MPI_Send(a(1), 1, MPI_INTEGER, right, 11, comm)
    call MPI_Send(a(3), 1, MPI_INTEGER, right, 13, comm)
    count = 0
    do while (count < 2)
      call MPI_Waitsome(3, requests, i, indices, statuses)
      if (i == MPI_UNDEFINED) exit
      count = count + i
      call check(all(indices(1:i) == 1 .or. indices(1:i) == 3), 'MPI_Waitsome')
    end do
    call check(all(b == a), 'MPI_Waitsome of all')
    call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_Waitall of null requests')
  end subroutine

  subroutine collectives
    integer, asynchronous :: s(2 * n), r(2 * n)
    integer :: ones(n), twice(n)
    type(MPI_Datatype) :: types(n)
    type(MPI_Op) :: op
    ones = 1
    twice = [(2 * i, i = 0, n - 1)]
    types = MPI_INTEGER
    s = rank
    r = -1
    call MPI_Allgather(s, 1, MPI_INTEGER, r, 1, MPI_INTEGER, comm)
    call check(all(r(:n) == [(i, i = 0, n - 1)]), 'MPI_Allgather')
    call MPI_Gatherv(s, 1, MPI_INTEGER, r, ones, twice, MPI_INTEGER, 0, comm)
    if (rank == 0) call check(all(r(1::2) == [(i, i = 0, n - 1)]), 'MPI_Gatherv')
    r = rank + 1
    call MPI_Allreduce(MPI_IN_PLACE, r, 2, MPI_INTEGER, MPI_SUM, comm)
    call check(all(r(:2) == n * (n + 1) / 2), 'MPI_IN_PLACE')
    s(:n) = [(10 * rank + i, i = 0, n - 1)]
    call MPI_Ialltoallw(s, ones, 4 * [(i, i = 0, n - 1)], types, r, ones, &
                        4 * [(i, i = 0, n - 1)], types, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(r(:n) == [(10 * i + rank, i = 0, n - 1)]), 'MPI_Ialltoallw')
    call MPI_Op_create(larger_then_sum, .true., op)
    s(:2) = [rank, 1]
    call MPI_Allreduce(s, r, 2, MPI_INTEGER, op, comm)
    call check(all(r(:2) == [n - 1, n]), 'an operation of the program''s')
    call MPI_Op_commutative(op, flag)
    call check(flag, 'MPI_Op_commutative')
    call MPI_Op_free(op)
    call check(op == MPI_OP_NULL, 'MPI_Op_free')
    call MPI_Op_create_c(larger_then_sum_c, .true., op)
    call MPI_Allreduce(s, r, 2_MPI_COUNT_KIND, MPI_INTEGER, op, comm)
    call check(all(r(:2) == [n - 1, n]), 'an operation of large counts')
    call MPI_Op_free(op)
    call MPI_Bcast_init(r, 1, MPI_INTEGER, 0, comm, MPI_INFO_NULL, request)
    r(1) = merge(9, 0, rank == 0)
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(r(1) == 9, 'MPI_Bcast_init')
    call MPI_Request_free(request)
  end subroutine

  subroutine datatypes
    type(MPI_Datatype) :: column, both, found(2)
    integer, asynchronous :: a(4, 4), b(4)
    integer :: integers(3), numbers, addresses, datatypes_, combiner, size, position
    integer(MPI_ADDRESS_KIND) :: places(2), got(2), lower, extent
    integer(MPI_COUNT_KIND) :: long_size
    character(64) :: packed
    character(MPI_MAX_OBJECT_NAME) :: name
    a = reshape([(i, i = 1, 16)], [4, 4])
    call MPI_Type_vector(4, 1, 4, MPI_INTEGER, column)
    call MPI_Type_commit(column)
    call MPI_Type_size(column, size)
    call MPI_Type_size(column, long_size)
    call check(size == 16 .and. long_size == 16, 'MPI_Type_size')
    call MPI_Type_get_extent(column, lower, extent)
    call check(lower == 0 .and. extent == 52, 'MPI_Type_get_extent')
    call MPI_Sendrecv(a, 1, column, right, 20, b, 4, MPI_INTEGER, left, 20, comm, status)
    call check(all(b == a(1, :)), 'a vector')
    call MPI_Get_address(a, places(1))
    call MPI_Get_address(b, places(2))
    call MPI_Type_create_struct(2, [1, 4], places, [column, MPI_INTEGER], both)
    call MPI_Type_commit(both)
    a(1, :) = rank
    b = rank
    call MPI_Bcast(MPI_BOTTOM, 1, both, 0, comm)
    call check(all(a(1, :) == 0) .and. all(b == 0), 'MPI_BOTTOM')
    call MPI_Type_get_envelope(both, numbers, addresses, datatypes_, combiner)
    call check(combiner == MPI_COMBINER_STRUCT .and. datatypes_ == 2, 'MPI_Type_get_envelope')
    found = MPI_DATATYPE_NULL
    call MPI_Type_get_contents(column, 3, 0, 1, integers, got, found)
    call check(found(1) == MPI_INTEGER .and. found(2) == MPI_DATATYPE_NULL, &
               'MPI_Type_get_contents')
    position = 0
    call MPI_Pack(a, 1, column, packed, 64, position, comm)
    b = -1
    position = 0
    call MPI_Unpack(packed, 64, position, b, 4, MPI_INTEGER, comm)
    call check(all(b == 0), 'MPI_Unpack')
    call MPI_Type_set_name(column, 'column  ')
    call MPI_Type_get_name(column, name, size)
    call check(name == 'column' .and. size == 6, 'MPI_Type_get_name')
    call MPI_Type_free(both)
    call MPI_Type_free(column, ierr)
    call check(column == MPI_DATATYPE_NULL .and. ierr == 0, 'MPI_Type_free')
    call MPI_Sizeof(a, size)
    call check(size == 4, 'MPI_Sizeof')
  end subroutine

  subroutine communicators
    type(MPI_Comm) :: half, ring
    type(MPI_Group) :: all_ranks, first
    integer :: size, dims(1), coords(1), source, dest
    logical :: periods(1)
    call MPI_Comm_split(comm, mod(rank, 2), rank, half)
    call MPI_Comm_size(half, size)
    call check(size == (n + 1 - mod(rank, 2)) / 2, 'MPI_Comm_split')
    call MPI_Comm_free(half)
    call check(half == MPI_COMM_NULL, 'MPI_Comm_free')
    call MPI_Comm_group(comm, all_ranks)
    call MPI_Group_incl(all_ranks, 1, [0], first)
    call MPI_Comm_create(comm, first, half)
    call check((half == MPI_COMM_NULL) .eqv. (rank /= 0), 'MPI_Comm_create')
    if (rank == 0) call MPI_Comm_free(half)
    call MPI_Group_free(first)
    call MPI_Group_free(all_ranks)
    call MPI_Cart_create(comm, 1, [n], [.true.], .false., ring)
    call MPI_Cart_get(ring, 1, dims, periods, coords)
    call check(dims(1) == n .and. periods(1) .and. coords(1) == rank, 'MPI_Cart_get')
    call MPI_Cart_shift(ring, 0, 1, source, dest)
    call check(source == left .and. dest == right, 'MPI_Cart_shift')
    call MPI_Comm_free(ring)
    call MPI_Dist_graph_create_adjacent(comm, 1, [left], MPI_UNWEIGHTED, 1, [right], &
                                        MPI_UNWEIGHTED, MPI_INFO_NULL, .false., ring)
    call MPI_Dist_graph_neighbors_count(ring, source, dest, flag)
    call check(source == 1 .and. dest == 1 .and. .not. flag, 'MPI_UNWEIGHTED')
    call MPI_Comm_free(ring)
  end subroutine

  subroutine attributes
    integer :: keyval
    integer(MPI_ADDRESS_KIND) :: value
    type(MPI_Comm) :: twin
    call MPI_Comm_create_keyval(copy, delete, keyval, 3_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(comm, keyval, 40_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(comm, twin)
    call MPI_Comm_get_attr(twin, keyval, value, flag)
    call check(flag .and. value == 43 .and. copies == 1, 'a copied attribute')
    call MPI_Comm_free(twin)
    call MPI_Comm_delete_attr(comm, keyval)
    call check(deletes == 2, 'deleted attributes')
    call MPI_Comm_free_keyval(keyval)
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, &
                                0_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_set_attr(comm, keyval, 50_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(comm, twin)
    call MPI_Comm_get_attr(twin, keyval, value, flag)
    call check(flag .and. value == 50, 'MPI_COMM_DUP_FN')
    call MPI_Comm_free(twin)
    call MPI_Comm_delete_attr(comm, keyval)
    call MPI_Comm_free_keyval(keyval)
    call MPI_Comm_get_attr(comm, MPI_TAG_UB, value, flag)
    call check(flag .and. value >= 32767, 'MPI_TAG_UB')
  end subroutine

  subroutine windows
    type(MPI_Win) :: win
    integer, pointer :: memory(:)
    type(c_ptr) :: base
    integer, asynchronous :: a(4), old
    integer(MPI_ADDRESS_KIND) :: size
    integer :: unit
    call MPI_Win_allocate(32_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, comm, base, win)
    call c_f_pointer(base, memory, [8])
    memory = rank
    a = [10, 11, 12, 13]
    call MPI_Win_fence(0, win)
    call MPI_Put(a, 4, MPI_INTEGER, right, 1_MPI_ADDRESS_KIND, 4, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(memory == [rank, 10, 11, 12, 13, rank, rank, rank]), 'MPI_Put')
    call MPI_Win_fence(0, win)
    call MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win)
    call MPI_Fetch_and_op(a, old, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, MPI_SUM, win)
    call MPI_Win_unlock(right, win)
    call check(old == right, 'MPI_Fetch_and_op')
    call MPI_Barrier(comm)
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, size, flag)
    call check(flag .and. size == 32, 'MPI_WIN_SIZE')
    call MPI_Win_free(win)
    call check(win == MPI_WIN_NULL, 'MPI_Win_free')
    call MPI_Win_allocate_shared(8_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_SELF, base, win)
    call MPI_Win_shared_query(win, 0, size, unit, base)
    call check(size == 8 .and. unit == 4 .and. c_associated(base), 'MPI_Win_shared_query')
    call MPI_Win_free(win)
    call MPI_Alloc_mem(16_MPI_ADDRESS_KIND, MPI_INFO_NULL, base)
    call c_f_pointer(base, memory, [4])
    memory = 5
    call MPI_Free_mem(memory)
  end subroutine

  subroutine strings
    type(MPI_Info) :: info
    character(MPI_MAX_INFO_VAL) :: value
    character(MPI_MAX_PROCESSOR_NAME) :: name
    integer :: length
    call MPI_Info_create(info)
    call MPI_Info_set(info, ' key ', ' value ')
    length = 16
    call MPI_Info_get_string(info, 'key', length, value, flag)
    call check(flag .and. value == 'value' .and. length == 5, 'MPI_Info_get_string')
    call MPI_Info_free(info)
    call check(info == MPI_INFO_NULL, 'MPI_Info_free')
    call MPI_Get_processor_name(name, length)
    call check(length > 0 .and. len_trim(name) == length, 'MPI_Get_processor_name')
    call MPI_Error_string(MPI_ERR_COUNT, value, length, ierr)
    call check(ierr == MPI_SUCCESS .and. length > 0, 'MPI_Error_string')
  end subroutine

  subroutine handlers
    type(MPI_Errhandler) :: handler, got
    type(MPI_Comm) :: twin
    type(MPI_Win) :: win
    type(MPI_Session) :: session
    integer, asynchronous :: cell(1)
    call MPI_Comm_dup(comm, twin)
    call MPI_Comm_create_errhandler(on_comm, handler)
    call MPI_Comm_set_errhandler(twin, handler)
    call MPI_Comm_get_errhandler(twin, got)
    call check(got == handler, 'MPI_Comm_get_errhandler')
    call MPI_Errhandler_free(got)
    call MPI_Errhandler_free(handler)
    handled = 0
    call MPI_Send(cell, -1, MPI_INTEGER, 0, 0, twin)
    call check(handled == MPI_ERR_COUNT, 'an error handler of a communicator')
    handled = 0
    request%MPI_VAL = 99999
    call MPI_Isend(cell, 1, MPI_INTEGER, n, 0, twin, request, ierr)
    call check(handled == MPI_ERR_RANK .and. ierr == MPI_ERR_RANK .and. &
               request == MPI_REQUEST_NULL, 'an error, and a null request')
    call MPI_Comm_free(twin)
    call MPI_Win_create(cell, 4_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, comm, win)
    call MPI_Win_create_errhandler(on_win, handler)
    call MPI_Win_set_errhandler(win, handler)
    call MPI_Win_call_errhandler(win, MPI_ERR_OTHER)
    call check(handled == MPI_ERR_OTHER, 'an error handler of a window')
    call MPI_Errhandler_free(handler)
    call MPI_Win_free(win)
    handled = 0
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session)
    call MPI_Session_create_errhandler(on_session, handler)
    call MPI_Session_set_errhandler(session, handler)
    call MPI_Session_call_errhandler(session, MPI_ERR_OTHER)
    call check(handled == MPI_ERR_OTHER, 'an error handler of a session')
    call MPI_Errhandler_free(handler)
    call MPI_Session_finalize(session)
  end subroutine

  subroutine statuses_convert
    integer :: old(MPI_STATUS_SIZE), back(MPI_STATUS_SIZE)
    old = [1, 2, 3, 4, 5, 6, 7, 8]
    call MPI_Status_f2f08(old, status)
    call check(status%MPI_SOURCE == 1 .and. status%MPI_TAG == 2 .and. status%MPI_ERROR == 3, &
               'MPI_Status_f2f08')
    call PMPI_Status_f082f(status, back, ierr)
    call check(all(back == old) .and. ierr == 0 .and. old(MPI_TAG) == 2, 'MPI_Status_f082f')
    call MPI_Status_set_tag(status, 9)
    call MPI_Status_get_tag(status, i)
    call check(i == 9, 'MPI_Status_get_tag')
  end subroutine

  subroutine buffered
    integer, target :: room(4096)
    integer, asynchronous :: a(4), b(4)
    integer :: size
    integer(MPI_COUNT_KIND) :: long_size
    type(c_ptr) :: place
    a = rank
    call MPI_Buffer_attach(room, 4 * 4096)
    call MPI_Bsend(a, 4, MPI_INTEGER, right, 30, comm)
    call MPI_Recv(b, 4, MPI_INTEGER, left, 30, comm, status)
    call check(all(b == left), 'MPI_Bsend')
    call MPI_Buffer_detach(place, size)
    call check(size == 4 * 4096 .and. is_at(place, room), 'MPI_Buffer_detach')
    call MPI_Comm_attach_buffer(comm, room, 4096_MPI_COUNT_KIND)
    call MPI_Comm_detach_buffer(comm, place, long_size)
    call check(long_size == 4096 .and. is_at(place, room), 'MPI_Comm_detach_buffer')
    call MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0)
    call MPI_Buffer_detach(place, size)
    call check(is_constant(place, MPI_BUFFER_AUTOMATIC), 'MPI_BUFFER_AUTOMATIC')
  end subroutine

  logical function is_constant(place, constant)
    type(c_ptr), intent(in) :: place
    integer, target, intent(in) :: constant
    is_constant = c_associated(place, c_loc(constant))
  end function

  ! By numbers: compilers know that no pointer to `what` can come from a call.
  logical function is_at(place, what)
    type(c_ptr), intent(in) :: place
    type(*), intent(in) :: what(..)
    integer(MPI_ADDRESS_KIND) :: address
    call MPI_Get_address(what, address)
    is_at = transfer(place, address) == address
  end function

  subroutine partitioned
    integer, asynchronous :: a(8), b(8)
    a = [(100 * rank + i, i = 1, 8)]
    b = 0
    call MPI_Psend_init(a, 4, 2_MPI_COUNT_KIND, MPI_INTEGER, right, 40, comm, MPI_INFO_NULL, &
                        requests(1))
    call MPI_Precv_init(b, 4, 2_MPI_COUNT_KIND, MPI_INTEGER, left, 40, comm, MPI_INFO_NULL, &
                        requests(2))
    call MPI_Startall(2, requests)
    call MPI_Pready_range(0, 2, requests(1))
    call MPI_Pready(3, requests(1))
    flag = .false.
    do while (.not. flag)
      call MPI_Parrived(requests(2), 3, flag)
    end do
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(b == [(100 * left + i, i = 1, 8)]), 'partitioned')
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine

  subroutine generalized
    call MPI_Grequest_start(query_state, free_state, cancel_state, 7_MPI_ADDRESS_KIND, &
                            request)
    call MPI_Test(request, flag, status)
    call check(.not. flag, 'MPI_Grequest_start')
    call MPI_Cancel(request)
    call MPI_Grequest_complete(request)
    call MPI_Wait(request, status)
    call check(status%MPI_TAG == 17 .and. all(stages == 1), 'a generalised request')
  end subroutine

  subroutine large_counts
    integer(MPI_COUNT_KIND), parameter :: four = 4
    integer(MPI_COUNT_KIND) :: count, ones(n), large(5)
    integer(MPI_ADDRESS_KIND) :: places(n), bytes(n), addresses(1)
    integer, asynchronous :: a(n), b(n), c(4), d(4)
    integer :: integers(1)
    type(MPI_Datatype) :: types(n), type, found(1)
    c = rank
    call MPI_Sendrecv(c, four, MPI_INTEGER, right, 50, d, four, MPI_INTEGER, left, 50, comm, status)
    call MPI_Get_count(status, MPI_INTEGER, count)
    call check(count == 4 .and. all(d == left), 'MPI_Sendrecv of large counts')
    ones = 1
    places = [(i, i = 0, n - 1)]
    bytes = 4 * places
    types = MPI_INTEGER
    a = 10 * rank + int(places)
    call MPI_Alltoallv(a, ones, places, MPI_INTEGER, b, ones, places, MPI_INTEGER, comm)
    call check(all(b == 10 * int(places) + rank), 'MPI_Alltoallv of large counts')
    b = -1
    call MPI_Alltoallw(a, ones, bytes, types, b, ones, bytes, types, comm)
    call check(all(b == 10 * int(places) + rank), 'MPI_Alltoallw of large counts')
    call MPI_Type_create_hindexed(2_MPI_COUNT_KIND, [1_MPI_COUNT_KIND, 1_MPI_COUNT_KIND], &
                                  [0_MPI_COUNT_KIND, 8_MPI_COUNT_KIND], MPI_INTEGER, type)
    call MPI_Type_get_contents(type, 1_MPI_COUNT_KIND, 0_MPI_COUNT_KIND, 5_MPI_COUNT_KIND, &
                               1_MPI_COUNT_KIND, integers, addresses, large, found)
    call check(found(1) == MPI_INTEGER .and. all(large == [2, 1, 1, 0, 8]), &
               'MPI_Type_get_contents of large counts')
    call MPI_Type_free(type)
  end subroutine
end program

! What MPICH's interface for Fortran (mpif.h, and the module mpi of its gfortran) has of its own,
! between any number of ranks: sentinels, strings, truth values, callbacks, attributes.
module of_the_program
#ifdef WITH_MODULE
  use mpi
#endif
  implicit none
#ifndef WITH_MODULE
  include 'mpif.h'
#endif
  integer :: copies = 0, deletes = 0, handled = 0, stages(3) = 0
contains
  subroutine larger_then_sum(invec, inoutvec, len, datatype)
    integer :: invec(*), inoutvec(*), len, datatype
    if (datatype /= MPI_INTEGER) return
    inoutvec(1) = max(invec(1), inoutvec(1))
    inoutvec(2:len) = invec(2:len) + inoutvec(2:len)
  end subroutine

  subroutine copy(oldcomm, keyval, extra_state, value_in, value_out, flag, ierror)
    integer :: oldcomm, keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, value_in, value_out
    logical :: flag
    copies = copies + 1
    value_out = value_in + extra_state
    flag = value_in > 0
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete(comm, keyval, attribute_val, extra_state, ierror)
    integer :: comm, keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    deletes = deletes + int(attribute_val)
    ierror = MPI_SUCCESS
  end subroutine

  subroutine on_error(comm, error_code)
    integer :: comm, error_code
    if (comm /= MPI_COMM_NULL) handled = error_code
  end subroutine

  subroutine query_state(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: status(MPI_STATUS_SIZE), ierror
    if (extra_state == 7) stages(1) = stages(1) + 1
    call MPI_Status_set_elements(status, MPI_INTEGER, 3, ierror)
    call MPI_Status_set_cancelled(status, .false., ierror)
    status(MPI_SOURCE) = 0
    status(MPI_TAG) = 17
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

program fortran
  use of_the_program
  use checks
  implicit none
  integer :: rank, n, left, right, ierr
  integer :: status(MPI_STATUS_SIZE)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  left = mod(rank + n - 1, n)
  right = mod(rank + 1, n)
  call library
  call sentinels
  call completion
  call truth
  call strings
  call operations
  call attributes
  call predefined_attributes
  call handlers
  call generalized
  call report(rank)
  call MPI_Finalize(ierr)

contains

  subroutine library
    character(MPI_MAX_LIBRARY_VERSION_STRING) :: version
    integer :: length
    call MPI_Get_library_version(version, length, ierr)
    call check(index(version(1:length), 'Ferry') > 0, 'this runs on Ferry')
    call check(version(length + 1:) == ' ', 'MPI_Get_library_version: blanks at the end')
  end subroutine

  subroutine sentinels
    integer :: mine, got, all(n), i, type
    integer(MPI_ADDRESS_KIND) :: place(1)
    integer :: sources(1), weights(1), graph, indegree, outdegree
    logical :: weighted
    mine = rank + 1
    call MPI_Allreduce(MPI_IN_PLACE, mine, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(mine == n * (n + 1) / 2, 'MPI_IN_PLACE')
    all = -1
    all(rank + 1) = rank
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INTEGER, MPI_COMM_WORLD, &
                       ierr)
    call check(all_equal(all, [(i, i=0, n - 1)]), 'MPI_IN_PLACE of MPI_Allgather')
    mine = rank
    got = -1
    call MPI_Sendrecv(mine, 1, MPI_INTEGER, right, 5, got, 1, MPI_INTEGER, left, 5, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call check(got == left, 'MPI_STATUS_IGNORE')
    call MPI_Sendrecv(mine, 1, MPI_INTEGER, MPI_PROC_NULL, 5, got, 1, MPI_INTEGER, MPI_PROC_NULL, &
                      MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
    call check(status(MPI_SOURCE) == MPI_PROC_NULL .and. status(MPI_TAG) == MPI_ANY_TAG, &
               'the status of a receive from no rank')
    call MPI_Get_address(got, place(1), ierr)
    call MPI_Type_create_hindexed(1, [1], place, MPI_INTEGER, type, ierr)
    call MPI_Type_commit(type, ierr)
    got = -1
    if (n == 1) then
      call MPI_Sendrecv(mine, 1, MPI_INTEGER, 0, 6, MPI_BOTTOM, 1, type, 0, 6, MPI_COMM_WORLD, &
                        status, ierr)
    else
      call MPI_Sendrecv(mine, 1, MPI_INTEGER, right, 6, MPI_BOTTOM, 1, type, left, 6, &
                        MPI_COMM_WORLD, status, ierr)
    end if
    call MPI_Get_address(got, place(1), ierr)
    call check(got == left .and. status(MPI_SOURCE) == left, 'MPI_BOTTOM')
    call MPI_Type_free(type, ierr)
    sources = left
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, sources, MPI_UNWEIGHTED, 1, [right], &
                                        MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph, ierr)
    call MPI_Dist_graph_neighbors_count(graph, indegree, outdegree, weighted, ierr)
    call check(indegree == 1 .and. outdegree == 1 .and. .not. weighted, 'MPI_UNWEIGHTED')
    call MPI_Comm_free(graph, ierr)
    weights = 3
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, sources, weights, 1, [right], weights, &
                                        MPI_INFO_NULL, .false., graph, ierr)
    call MPI_Dist_graph_neighbors_count(graph, indegree, outdegree, weighted, ierr)
    call check(weighted, 'weights')
    call MPI_Comm_free(graph, ierr)
  end subroutine

  logical function all_equal(a, b)
    integer, intent(in) :: a(:), b(:)
    all_equal = all(a == b)
  end function

  subroutine completion
    integer :: requests(4), statuses(MPI_STATUS_SIZE, 4), got(2), done, indices(4), count
    integer :: mine(2)
    logical :: flag
    mine = [rank, rank + 100]
    call MPI_Irecv(got(1), 1, MPI_INTEGER, left, 1, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Irecv(got(2), 1, MPI_INTEGER, left, 2, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Isend(mine(1), 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, requests(3), ierr)
    call MPI_Isend(mine(2), 1, MPI_INTEGER, right, 2, MPI_COMM_WORLD, requests(4), ierr)
    call MPI_Waitall(4, requests, statuses, ierr)
    call MPI_Get_count(statuses(:, 2), MPI_INTEGER, count, ierr)
    call check(statuses(MPI_SOURCE, 1) == left .and. statuses(MPI_TAG, 2) == 2 .and. count == 1, &
               'MPI_Waitall: statuses')
    call check(all(requests == MPI_REQUEST_NULL), 'MPI_Waitall: requests')
    call MPI_Irecv(got(1), 1, MPI_INTEGER, left, 1, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Isend(mine(1), 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    call check(got(1) == left, 'MPI_STATUSES_IGNORE')
    call MPI_Irecv(got(1), 1, MPI_INTEGER, left, 3, MPI_COMM_WORLD, requests(1), ierr)
    requests(2) = MPI_REQUEST_NULL
    call MPI_Send(mine, 1, MPI_INTEGER, MPI_PROC_NULL, 3, MPI_COMM_WORLD, ierr)
    call MPI_Isend(mine(1), 1, MPI_INTEGER, right, 3, MPI_COMM_WORLD, requests(3), ierr)
    call MPI_Wait(requests(3), MPI_STATUS_IGNORE, ierr)
    call MPI_Waitany(2, requests, done, status, ierr)
    call check(done == 1 .and. status(MPI_TAG) == 3, 'MPI_Waitany: indices from 1 on')
    call MPI_Waitany(2, requests, done, status, ierr)
    call check(done < 0, 'MPI_Waitany of none')  ! MPICH 4.0 adds 1 to MPI_UNDEFINED
    call MPI_Irecv(got(1), 1, MPI_INTEGER, left, 4, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Isend(mine(1), 1, MPI_INTEGER, right, 4, MPI_COMM_WORLD, requests(3), ierr)
    call MPI_Wait(requests(3), MPI_STATUS_IGNORE, ierr)
    call MPI_Waitsome(2, requests, done, indices, statuses, ierr)
    call check(done == 1 .and. indices(1) == 2, 'MPI_Waitsome: indices from 1 on')
    call MPI_Testall(2, requests, flag, MPI_STATUSES_IGNORE, ierr)
    call check(flag, 'MPI_Testall')
  end subroutine

  subroutine truth
    logical :: flag, periods(2), reorder, got
    integer :: grid, dims(2), coords(2)
    call MPI_Initialized(flag, ierr)
    call check(flag, 'MPI_Initialized')
    call MPI_Finalized(flag, ierr)
    call check(.not. flag, 'MPI_Finalized')
    dims = [n, 1]
    periods = [.true., .false.]
    reorder = .false.
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, reorder, grid, ierr)
    periods = [.false., .true.]
    call MPI_Cart_get(grid, 2, dims, periods, coords, ierr)
    call check(periods(1) .and. .not. periods(2) .and. coords(1) == rank, 'MPI_Cart_get')
    call MPI_Comm_free(grid, ierr)
    flag = rank >= 0
    call MPI_Allreduce(flag, got, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
    call check(got, 'MPI_LAND of .true.')
    flag = rank < 0
    call MPI_Allreduce(flag, got, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
    call check(.not. got, 'MPI_LOR of .false.')
  end subroutine

  subroutine strings
    character(MPI_MAX_OBJECT_NAME) :: name
    character(3) :: short
    character(20) :: key, value
    character(MPI_MAX_PROCESSOR_NAME) :: host
    character(MPI_MAX_ERROR_STRING) :: text
    integer :: length, comm, info
    logical :: flag
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
    call MPI_Comm_set_name(comm, 'a name   ', ierr)
    call MPI_Comm_get_name(comm, name, length, ierr)
    call check(name == 'a name' .and. length == 6 .and. scan(name, achar(0)) == 0, &
               'MPI_Comm_get_name')
    call MPI_Comm_free(comm, ierr)
    call MPI_Info_create(info, ierr)
    key = '  first'
    call MPI_Info_set(info, key, ' a value  ', ierr)
    call MPI_Info_get(info, 'first', 20, value, flag, ierr)
    call check(flag .and. value == 'a value', 'MPI_Info_get: blanks at both ends go')
    call MPI_Info_get(info, 'second', 20, value, flag, ierr)
    call check(.not. flag, 'MPI_Info_get of what is not there')
    short = '???'
    call MPI_Info_get_nthkey(info, 0, key, ierr)
    call check(key == 'first', 'MPI_Info_get_nthkey')
    call MPI_Info_free(info, ierr)
    call MPI_Get_processor_name(host, length, ierr)
    call check(length > 0 .and. host(length + 1:) == ' ', 'MPI_Get_processor_name')
    call MPI_Error_string(MPI_ERR_TRUNCATE, text, length, ierr)
    call check(length > 0 .and. text(length + 1:) == ' ', 'MPI_Error_string')
  end subroutine

  subroutine operations
    integer :: op, mine(3), got(3), i
    logical :: commute
    call MPI_Op_create(larger_then_sum, .true., op, ierr)
    call MPI_Op_commutative(op, commute, ierr)
    call check(commute, 'MPI_Op_commutative')
    mine = [rank, 1, rank]
    call MPI_Allreduce(mine, got, 3, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
    call check(all(got == [n - 1, n, n * (n - 1) / 2]), 'an operation of the program')
    call MPI_Op_free(op, ierr)
    do i = 1, 3
      mine(i) = rank + i
    end do
    call MPI_Allreduce(mine, got, 1, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD, ierr)
    call check(all(got(1:2) == [n, n + 1]), 'MPI_2INTEGER, MPI_MAXLOC')
  end subroutine

  subroutine attributes
    integer :: key, comm, other, type, old_key
    integer(MPI_ADDRESS_KIND) :: extra, value, large
    logical :: flag
    extra = 1000
    large = 12345678901_MPI_ADDRESS_KIND
    call MPI_Comm_create_keyval(copy, delete, key, extra, ierr)
    call MPI_Comm_dup(MPI_COMM_SELF, comm, ierr)
    call MPI_Comm_get_attr(comm, key, value, flag, ierr)
    call check(.not. flag, 'an attribute that was not set')
    call MPI_Comm_set_attr(comm, key, large, ierr)
    call MPI_Comm_get_attr(comm, key, value, flag, ierr)
    call check(flag .and. value == large, 'MPI_Comm_get_attr: 64 bits')
    value = 5
    call MPI_Comm_set_attr(comm, key, value, ierr)
    call check(deletes == int(large), 'the old value is deleted')
    deletes = 0
    call MPI_Comm_dup(comm, other, ierr)
    call MPI_Comm_get_attr(other, key, value, flag, ierr)
    call check(flag .and. value == 1005 .and. copies == 1, 'a copy of the value')
    call MPI_Comm_free(other, ierr)
    call check(deletes == 1005, 'the copy is deleted')
    value = -1
    call MPI_Comm_set_attr(comm, key, value, ierr)
    call MPI_Comm_dup(comm, other, ierr)
    call MPI_Comm_get_attr(other, key, value, flag, ierr)
    call check(.not. flag .and. copies == 2, 'a copy that the program did not want')
    call MPI_Comm_free(other, ierr)
    call MPI_Comm_delete_attr(comm, key, ierr)
    call MPI_Comm_free_keyval(key, ierr)
    call check(key == MPI_KEYVAL_INVALID, 'MPI_Comm_free_keyval')

    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, extra, ierr)
    value = 77
    call MPI_Comm_set_attr(comm, key, value, ierr)
    call MPI_Comm_dup(comm, other, ierr)
    value = 0
    call MPI_Comm_get_attr(other, key, value, flag, ierr)
    call check(flag .and. value == 77, 'MPI_COMM_DUP_FN')
    call MPI_Comm_free(other, ierr)
    call MPI_Comm_free_keyval(key, ierr)

    call MPI_Keyval_create(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, old_key, 0, ierr)
    call MPI_Attr_put(comm, old_key, -6, ierr)
    call MPI_Attr_get(comm, old_key, type, flag, ierr)
    call check(flag .and. type == -6, 'MPI_Attr_get')
    call MPI_Comm_get_attr(comm, old_key, value, flag, ierr)
    call check(flag .and. value == -6, 'MPI_Comm_get_attr of an INTEGER')
    call MPI_Comm_free(comm, ierr)
    call MPI_Keyval_free(old_key, ierr)

    call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, key, extra, ierr)
    value = 78
    call MPI_Type_set_attr(MPI_INTEGER, key, value, ierr)
    call MPI_Type_dup(MPI_INTEGER, type, ierr)
    value = 0
    call MPI_Type_get_attr(type, key, value, flag, ierr)
    call check(flag .and. value == 78, 'MPI_TYPE_DUP_FN')
    call MPI_Type_free(type, ierr)
    call MPI_Type_delete_attr(MPI_INTEGER, key, ierr)
    call MPI_Type_free_keyval(key, ierr)
  end subroutine

  subroutine predefined_attributes
    integer(MPI_ADDRESS_KIND) :: value, base
    integer :: window, key, memory(4)
    logical :: flag
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
    call check(flag .and. value >= 32767, 'MPI_TAG_UB')
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, value, flag, ierr)
    call check(flag .and. value == MPI_PROC_NULL, 'MPI_HOST')
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, value, flag, ierr)
    call check(flag .and. (value == MPI_ANY_SOURCE .or. value == MPI_PROC_NULL .or. value >= 0), &
               'MPI_IO')
    call MPI_Win_create(memory, 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, ierr)
    call MPI_Win_get_attr(window, MPI_WIN_SIZE, value, flag, ierr)
    call check(flag .and. value == 16, 'MPI_WIN_SIZE')
    call MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, value, flag, ierr)
    call check(flag .and. value == 4, 'MPI_WIN_DISP_UNIT')
    call MPI_Get_address(memory, base, ierr)
    call MPI_Win_get_attr(window, MPI_WIN_BASE, value, flag, ierr)
    call check(flag .and. value == base, 'MPI_WIN_BASE')
    call MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, value, flag, ierr)
    call check(flag .and. value == MPI_WIN_FLAVOR_CREATE, 'MPI_WIN_CREATE_FLAVOR')
    call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, key, value, ierr)
    value = 79
    call MPI_Win_set_attr(window, key, value, ierr)
    value = 0
    call MPI_Win_get_attr(window, key, value, flag, ierr)
    call check(flag .and. value == 79, 'MPI_Win_get_attr')
    call MPI_Win_free_keyval(key, ierr)
    call MPI_Win_free(window, ierr)
  end subroutine

  subroutine handlers
    integer :: handler, comm, class
    call MPI_Comm_dup(MPI_COMM_SELF, comm, ierr)
    call MPI_Comm_create_errhandler(on_error, handler, ierr)
    call MPI_Comm_set_errhandler(comm, handler, ierr)
    call MPI_Send(rank, 1, MPI_INTEGER, 4, 0, comm, ierr)
    call MPI_Error_class(ierr, class, ierr)
    call check(class == MPI_ERR_RANK, 'the code of a call that failed')
    call MPI_Error_class(handled, class, ierr)
    call check(class == MPI_ERR_RANK, 'the code that an error handler gets')
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierr)
    handled = 0
    call MPI_Send(rank, 1, MPI_INTEGER, 0, -5, comm, ierr)
    call MPI_Error_class(ierr, class, ierr)
    call check(class == MPI_ERR_TAG .and. handled == 0, 'MPI_ERRORS_RETURN')
    call MPI_Errhandler_free(handler, ierr)
    call MPI_Comm_free(comm, ierr)
  end subroutine

  subroutine generalized
    integer :: request, count
    integer(MPI_ADDRESS_KIND) :: state
    logical :: flag
    state = 7
    call MPI_Grequest_start(query_state, free_state, cancel_state, state, request, ierr)
    call MPI_Test(request, flag, status, ierr)
    call check(.not. flag, 'a generalised request that has not ended')
    call MPI_Cancel(request, ierr)
    call MPI_Grequest_complete(request, ierr)
    call MPI_Wait(request, status, ierr)
    call MPI_Get_count(status, MPI_INTEGER, count, ierr)
    call check(status(MPI_TAG) == 17 .and. count == 3, 'what query_fn has written')
    call check(all(stages == 1), 'query_fn, free_fn, cancel_fn')
  end subroutine
end program

! What the modules mpi_f08 of MPICH and Open MPI have of their own, between any number of ranks:
! sentinels, sections of arrays, typed handles and statuses, callbacks, attributes, absent `ierror`.
module of_the_program
  use, intrinsic :: iso_c_binding
  use mpi_f08
  implicit none
  integer :: copies = 0, deletes = 0, handled = 0, stages(2) = 0
contains
  subroutine larger_then_sum(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
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

  subroutine query_state(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    stages(1) = stages(1) + 1
    call MPI_Status_set_elements(status, MPI_INTEGER, 3)
    call MPI_Status_set_cancelled(status, .false.)
    status%MPI_SOURCE = 0
    status%MPI_TAG = 17
    ierror = MPI_SUCCESS
  end subroutine

  subroutine free_state(extra_state, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    stages(2) = stages(2) + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancel_state(extra_state, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine
end module

program fortran_typed
  use of_the_program
  use checks
  implicit none
  type(MPI_Comm) :: comm
  type(MPI_Status) :: status
  integer :: rank, n, left, right

  call MPI_Init()
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(comm, n)
  left = mod(rank + n - 1, n)
  right = mod(rank + 1, n)
  call sentinels
  call completion
  if (MPI_SUBARRAYS_SUPPORTED) call sections
  call callbacks
  call attributes
  call generalized
  call types
  call predefined
  call report(rank)
  call MPI_Finalize()

contains

  subroutine sentinels
    integer :: mine, got, indegree, outdegree
    integer, volatile :: places(1)  ! a call writes it that does not name it
    integer(MPI_ADDRESS_KIND) :: place(1)
    type(MPI_Datatype) :: type
    type(MPI_Comm) :: graph
    logical :: weighted
    mine = rank + 1
    call MPI_Allreduce(MPI_IN_PLACE, mine, 1, MPI_INTEGER, MPI_SUM, comm)
    call check(mine == n * (n + 1) / 2, 'MPI_IN_PLACE')
    mine = rank
    got = -1
    call MPI_Sendrecv(mine, 1, MPI_INTEGER, right, 5, got, 1, MPI_INTEGER, left, 5, comm, &
                      MPI_STATUS_IGNORE)
    call check(got == left, 'MPI_STATUS_IGNORE')
    call MPI_Get_address(places, place(1))
    call MPI_Type_create_hindexed(1, [1], place, MPI_INTEGER, type)
    call MPI_Type_commit(type)
    places = -1
    call MPI_Sendrecv(mine, 1, MPI_INTEGER, right, 6, MPI_BOTTOM, 1, type, left, 6, comm, status)
    call check(places(1) == left .and. status%MPI_SOURCE == left .and. status%MPI_TAG == 6, &
               'MPI_BOTTOM')
    call MPI_Type_free(type)
    call MPI_Dist_graph_create_adjacent(comm, 1, [left], MPI_UNWEIGHTED, 1, [right], &
                                        MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph)
    call MPI_Dist_graph_neighbors_count(graph, indegree, outdegree, weighted)
    call check(indegree == 1 .and. outdegree == 1 .and. .not. weighted, 'MPI_UNWEIGHTED')
    call MPI_Comm_free(graph)
    call MPI_Dist_graph_create_adjacent(comm, 0, places(1:0), MPI_WEIGHTS_EMPTY, 0, places(1:0), &
                                        MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, .false., graph)
    call MPI_Dist_graph_neighbors_count(graph, indegree, outdegree, weighted)
    call check(indegree == 0 .and. weighted, 'MPI_WEIGHTS_EMPTY')
    call MPI_Comm_free(graph)
  end subroutine

  subroutine completion
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: statuses(2)
    integer :: mine, count
    integer, asynchronous :: got
    mine = rank
    call MPI_Irecv(got, 1, MPI_INTEGER, left, 1, comm, requests(1))
    call MPI_Isend(mine, 1, MPI_INTEGER, right, 1, comm, requests(2))
    call MPI_Waitall(2, requests, statuses)
    call MPI_Get_count(statuses(1), MPI_INTEGER, count)
    call check(got == left .and. count == 1 .and. statuses(1)%MPI_TAG == 1, 'MPI_Waitall: statuses')
    call check(requests(1) == MPI_REQUEST_NULL, 'MPI_Waitall: requests')
    call MPI_Irecv(got, 1, MPI_INTEGER, left, 2, comm, requests(1))
    call MPI_Isend(mine, 1, MPI_INTEGER, right, 2, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(got == left, 'MPI_STATUSES_IGNORE')
  end subroutine

  subroutine sections
    integer :: mine(6, 4)
    integer, asynchronous :: got(6, 4)
    type(MPI_Request) :: requests(2)
    mine = rank
    got = -1
    call MPI_Irecv(got(2:6:2, 4:1:-1), 12, MPI_INTEGER, left, 3, comm, requests(1))
    call MPI_Isend(mine(1:3, :), 12, MPI_INTEGER, right, 3, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(got(2:6:2, :) == left) .and. all(got(1:5:2, :) == -1), 'sections of arrays')
  end subroutine

  subroutine callbacks
    type(MPI_Op) :: op
    type(MPI_Errhandler) :: handler
    type(MPI_Comm) :: other
    integer :: got(2), ierr, class
    call MPI_Op_create(larger_then_sum, .true., op)
    call MPI_Allreduce([rank, 1], got, 2, MPI_INTEGER, op, comm)
    call check(all(got == [n - 1, n]), 'an operation of the program')
    call MPI_Op_free(op)
    call MPI_Comm_dup(MPI_COMM_SELF, other)
    call MPI_Comm_create_errhandler(on_comm, handler)
    call MPI_Comm_set_errhandler(other, handler)
    call MPI_Send(rank, 1, MPI_INTEGER, 4, 0, other, ierr)
    call MPI_Error_class(handled, class)
    call check(class == MPI_ERR_RANK .and. ierr == handled, 'an error handler')
    call MPI_Errhandler_free(handler)
    call MPI_Comm_free(other)
  end subroutine

  subroutine attributes
    integer :: key
    integer(MPI_ADDRESS_KIND) :: extra, value
    type(MPI_Comm) :: one, other
    logical :: flag
    extra = 1000
    call MPI_Comm_create_keyval(copy, delete, key, extra)
    call MPI_Comm_dup(MPI_COMM_SELF, one)
    call MPI_Comm_set_attr(one, key, 5_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(one, other)
    call MPI_Comm_get_attr(other, key, value, flag)
    call check(flag .and. value == 1005 .and. copies == 1, 'a copy of the value')
    call MPI_Comm_free(other)
    call MPI_Comm_delete_attr(one, key)
    call check(deletes == 2, 'attributes are deleted')
    call MPI_Comm_free_keyval(key)
    call MPI_Comm_free(one)
    call MPI_Comm_get_attr(comm, MPI_TAG_UB, value, flag)
    call check(flag .and. value >= 32767, 'MPI_TAG_UB')
  end subroutine

  subroutine generalized
    type(MPI_Request) :: request
    integer :: count
    call MPI_Grequest_start(query_state, free_state, cancel_state, 7_MPI_ADDRESS_KIND, request)
    call MPI_Grequest_complete(request)
    call MPI_Wait(request, status)
    call MPI_Get_count(status, MPI_INTEGER, count)
    call check(status%MPI_TAG == 17 .and. count == 3, 'what query_fn has written')
    call check(all(stages == 1), 'query_fn, free_fn')
  end subroutine

  subroutine types
    class(*), allocatable :: any
    real(8) :: matrix(3, 3)
    complex :: number
    integer :: size, other, letter, ierr
    call MPI_Sizeof(matrix, size, ierr)
    call MPI_Sizeof(number, other, ierr)
    call MPI_Sizeof('a', letter, ierr)
    call check(size == 8 .and. other == 8 .and. letter == 1, 'MPI_Sizeof')
    allocate (any, source=comm)
    call check(storage_size(any) == 32, 'a polymorphic handle')
    call check(MPI_DOUBLE_PRECISION /= MPI_REAL .and. MPI_SUM == MPI_SUM, 'comparisons')
  end subroutine

  subroutine predefined
    type(c_ptr) :: memory, detached
    integer, pointer :: words(:)
    integer, target, asynchronous, save :: buffer(4096)
    integer :: key, size, got
    integer(MPI_ADDRESS_KIND) :: value
    type(MPI_Comm) :: other
    logical :: flag
    call MPI_Alloc_mem(64_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory)
    call c_f_pointer(memory, words, [16])
    words = 7
    call check(sum(words) == 112, 'MPI_Alloc_mem')
    call MPI_Free_mem(words)
    call MPI_Buffer_attach(buffer, 4 * 4096)
    call MPI_Bsend(rank, 1, MPI_INTEGER, right, 8, comm)
    call MPI_Recv(got, 1, MPI_INTEGER, left, 8, comm, MPI_STATUS_IGNORE)
    call MPI_Buffer_detach(detached, size)
    call check(got == left .and. size == 4 * 4096 .and. c_associated(detached, c_loc(buffer)), &
               'MPI_Buffer_detach')
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, &
                                0_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(comm, key, 17_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(comm, other)
    call MPI_Comm_get_attr(other, key, value, flag)
    call check(flag .and. value == 17, 'MPI_COMM_DUP_FN')
    call MPI_Comm_free(other)
    call MPI_Comm_delete_attr(comm, key)
    call MPI_Comm_free_keyval(key)
  end subroutine
end program

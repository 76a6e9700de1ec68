! A library that a program opens: it has constants of its own, as a module that f2py has made. Each of its
! functions returns how many checks have failed. TYPED: over mpi_f08.
#ifdef TYPED
#define STATUS_OF(name) type(MPI_Status) :: name
#define REQUEST type(MPI_Request)
#define DATATYPE type(MPI_Datatype)
#define COMMUNICATOR type(MPI_Comm)
#else
#define REQUEST integer
#define DATATYPE integer
#define COMMUNICATOR integer
#endif

integer(c_int) function start() bind(c)
  use iso_c_binding
#ifdef TYPED
  use mpi_f08
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
  integer :: ierr
  call MPI_Init(ierr)
  start = merge(0, 1, ierr == MPI_SUCCESS)
end function

integer(c_int) function finish() bind(c)
  use iso_c_binding
#ifdef TYPED
  use mpi_f08
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
  integer :: ierr
  call MPI_Finalize(ierr)
  finish = merge(0, 1, ierr == MPI_SUCCESS)
end function

integer(c_int) function work() bind(c)
  use iso_c_binding
#ifdef TYPED
  use mpi_f08
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
  integer :: rank, ranks, ierr, sums(2), got, failed, there(1)
  integer(MPI_ADDRESS_KIND) :: place(1)
  REQUEST :: requests(2)
  DATATYPE :: datatype
  COMMUNICATOR :: graph
  failed = 0
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)

  sums = [rank + 1, 1]
  call MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(sums(1) == ranks * (ranks + 1) / 2 .and. sums(2) == ranks, 'MPI_IN_PLACE')

  got = -1
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, rank, 7, got, 1, MPI_INTEGER, rank, 7, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, ierr)
  call check(got == rank, 'MPI_STATUS_IGNORE')
  got = -1
  call MPI_Irecv(got, 1, MPI_INTEGER, rank, 8, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_Isend(rank, 1, MPI_INTEGER, rank, 8, MPI_COMM_WORLD, requests(2), ierr)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  call check(got == rank, 'MPI_STATUSES_IGNORE')
  call check(untouched(), 'a status that is none was written')

  got = -1
  call MPI_Get_address(got, place(1), ierr)
  call MPI_Type_create_hindexed(1, [1], place, MPI_INTEGER, datatype, ierr)
  call MPI_Type_commit(datatype, ierr)
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, rank, 9, MPI_BOTTOM, 1, datatype, rank, 9, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, ierr)
  call check(got == rank, 'MPI_BOTTOM')
  call MPI_Type_free(datatype, ierr)

  there(1) = rank
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, there, MPI_UNWEIGHTED, 1, there, &
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph, ierr)
  call check(ierr == MPI_SUCCESS .and. is_unweighted(), 'MPI_UNWEIGHTED')
  call MPI_Comm_free(graph, ierr)
  work = failed

contains
  subroutine check(is_good, what)
    logical, intent(in) :: is_good
    character(*), intent(in) :: what
    if (.not. is_good) then
      failed = failed + 1
      print '(2a)', 'wrong: ', what
    end if
  end subroutine

  logical function untouched()
#ifdef TYPED
    type(MPI_Status) :: before
    untouched = MPI_STATUS_IGNORE%MPI_SOURCE == MPI_STATUSES_IGNORE(1)%MPI_SOURCE
#else
    untouched = all(MPI_STATUS_IGNORE == MPI_STATUS_IGNORE(1)) .and. &
                all(MPI_STATUSES_IGNORE(:, 1) == MPI_STATUS_IGNORE(1))
#endif
  end function

  logical function is_unweighted()
    integer :: into, out
    logical :: weighted
    call MPI_Dist_graph_neighbors_count(graph, into, out, weighted, ierr)
    is_unweighted = into == 1 .and. out == 1 .and. .not. weighted
  end function
end function

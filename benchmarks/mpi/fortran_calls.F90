! What fortran.c measures of one of Fortran's interfaces to MPI: compiled once for each, with
! BENCH_MPIF, BENCH_MODULE or BENCH_TYPED. Failures end the job, as MPI's error handler does.
#if defined(BENCH_MPIF)
#define NullSends null_sends_mpif
#define OwnMessages own_messages_mpif
#define SectionRounds section_rounds_mpif
#define USE_MPI
#define INCLUDE_MPI include 'mpif.h'
#elif defined(BENCH_MODULE)
#define NullSends null_sends_module
#define OwnMessages own_messages_module
#define SectionRounds section_rounds_module
#define USE_MPI use mpi
#define INCLUDE_MPI
#else
#define NullSends null_sends_typed
#define OwnMessages own_messages_typed
#define SectionRounds section_rounds_typed
#define USE_MPI use mpi_f08
#define INCLUDE_MPI
#endif

! Messages of 8 bytes that go nowhere: what the call itself costs.
subroutine NullSends(rounds) bind(c)
  USE_MPI
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  INCLUDE_MPI
  integer(c_int), value :: rounds
  double precision :: word(1)
  integer :: i, ierror

  word = 0
  do i = 1, rounds
    call MPI_Send(word, 1, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 7, MPI_COMM_WORLD, ierror)
  end do
end subroutine NullSends

! Messages of 8 bytes to oneself.
subroutine OwnMessages(rounds) bind(c)
  USE_MPI
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  INCLUDE_MPI
  integer(c_int), value :: rounds
  double precision :: out(1), in(1)
  integer :: i, ierror

  out = 0
  do i = 1, rounds
    call MPI_Sendrecv(out, 1, MPI_DOUBLE_PRECISION, 0, 7, in, 1, MPI_DOUBLE_PRECISION, 0, 7, &
                      MPI_COMM_SELF, MPI_STATUS_IGNORE, ierror)
  end do
end subroutine OwnMessages

! `n` numbers, every second one of `out`, for as many that arrive in every second one of `in`:
! `rounds` times.
subroutine SectionRounds(out, in, n, peer, rounds) bind(c)
  USE_MPI
  use, intrinsic :: iso_c_binding, only: c_int, c_double
  implicit none
  INCLUDE_MPI
  integer(c_int), value :: n, peer, rounds
  real(c_double) :: out(2 * n), in(2 * n)
  integer :: i, ierror

  do i = 1, rounds
    call MPI_Sendrecv(out(1:2 * n:2), n, MPI_DOUBLE_PRECISION, peer, 7, in(1:2 * n:2), n, &
                      MPI_DOUBLE_PRECISION, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  end do
end subroutine SectionRounds

! The datatypes of sections are kept for later sections of the same form: calls make no new ones,
! never take that of another form, threads share them, and none is left after MPI_Finalize. The
! program counts by taking the calls of PMPI by which the library makes and frees them.
module made_types
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: most = 4096
  integer(c_intptr_t) :: alive(most) = 0
  integer :: commits = 0

  interface
    function commit_in_c(type) bind(c, name='MPI_Type_commit') result(code)
      import c_int, c_intptr_t
      integer(c_intptr_t), intent(inout) :: type
      integer(c_int) :: code
    end function
    function free_in_c(type) bind(c, name='MPI_Type_free') result(code)
      import c_int, c_intptr_t
      integer(c_intptr_t), intent(inout) :: type
      integer(c_int) :: code
    end function
  end interface

contains

  function commit(type) bind(c, name='PMPI_Type_commit') result(code)
    integer(c_intptr_t), intent(inout) :: type
    integer(c_int) :: code
    !$omp critical (types)
    commits = commits + 1
    alive(findloc(alive, 0_c_intptr_t, 1)) = type
    !$omp end critical (types)
    code = commit_in_c(type)
  end function

  ! Those that were never committed are parts of others.
  function free(type) bind(c, name='PMPI_Type_free') result(code)
    integer(c_intptr_t), intent(inout) :: type
    integer(c_int) :: code
    integer :: place
    !$omp critical (types)
    place = findloc(alive, type, 1)
    if (place > 0) alive(place) = 0
    !$omp end critical (types)
    code = free_in_c(type)
  end function
end module

module at_the_end
  use mpi_f08
  use checks
  implicit none
  logical :: was_there = .false.
contains
  ! MPI_Finalize calls it after what is kept has been freed.
  subroutine send_section(comm, keyval, value, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: value, extra_state
    integer :: a(20), b(20), i
    a = [(i, i = 1, 20)]
    b = -1
    call MPI_Sendrecv(a(1:20:3), 7, MPI_INTEGER, 0, 1, b(20:1:-3), 7, MPI_INTEGER, 0, 1, comm, &
                      MPI_STATUS_IGNORE)
    call check(all(b(20:1:-3) == a(1:20:3)) .and. count(b /= -1) == 7, 'a section in MPI_Finalize')
    was_there = .true.
    ierror = MPI_SUCCESS
  end subroutine
end module

program kept_types
  use mpi_f08
  use made_types
  use at_the_end
  use checks
  use omp_lib
  implicit none
  type(MPI_Comm) :: comm
  type(MPI_Request) :: requests(2)
  integer :: rank, n, left, right, provided, keyval, i

  call in_a_session
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(comm, n)
  left = mod(rank + n - 1, n)
  right = mod(rank + 1, n)
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, send_section, keyval, 0_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, 0_MPI_ADDRESS_KIND)
  call the_same_form
  call forms_of_one_dimension
  call forms_of_three_dimensions
  call lengths_of_rows
  call other_items
  call own_datatypes
  call short_messages
  call several_threads
  call MPI_Finalize()
  call check(was_there, 'the callback of MPI_Finalize')
  call check(all(alive == 0), 'all datatypes of sections are freed')
  call report(rank)

contains

  ! Nothing would free them at its end.
  subroutine in_a_session
    type(MPI_Session) :: session
    type(MPI_Group) :: group
    type(MPI_Comm) :: own
    integer :: a(20), b(20), round
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session)
    call MPI_Group_from_session_pset(session, 'mpi://SELF', group)
    call MPI_Comm_create_from_group(group, 'kept', MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, own)
    do round = 1, 3
      a = round
      b = -1
      call MPI_Sendrecv(a(1:20:2), 10, MPI_INTEGER, 0, 8, b(2:20:2), 10, MPI_INTEGER, 0, 8, own, &
                        MPI_STATUS_IGNORE)
      call check(all(b(2:20:2) == round) .and. all(b(1:20:2) == -1), 'a section in a session')
    end do
    call check(commits == 6 .and. all(alive == 0), 'what calls in a session make, they free')
    call MPI_Comm_free(own)
    call MPI_Group_free(group)
    call MPI_Session_finalize(session)
  end subroutine

  subroutine the_same_form
    integer, asynchronous :: a(60), b(60)
    integer :: before
    before = commits
    do i = 1, 50
      a = i
      b = -1
      call MPI_Sendrecv(a(1:60:3), 20, MPI_INTEGER, right, 1, b(2:60:3), 20, MPI_INTEGER, left, 1, &
                        comm, MPI_STATUS_IGNORE)
      call check(all(b(2:60:3) == i) .and. count(b == -1) == 40, 'the same form again')
    end do
    call check(commits == before + 1, 'blocking calls make one datatype')
    do i = 1, 50
      a = i
      b = -1
      call MPI_Irecv(b(3:60:3), 20, MPI_INTEGER, left, 1, comm, requests(1))
      call MPI_Isend(a(1:60:3), 20, MPI_INTEGER, right, 1, comm, requests(2))
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      call check(all(b(3:60:3) == i) .and. count(b == -1) == 40, 'the same form, nonblocking')
    end do
    call check(commits == before + 1, 'nonblocking calls make none')
    do i = 1, 50
      a = i
      call MPI_Allreduce(MPI_IN_PLACE, a(1:60:3), 20, MPI_INTEGER, MPI_SUM, comm)
      call check(all(a(1:60:3) == i * n) .and. count(a == i) >= 40, 'the same form, of a copy')
    end do
    call check(commits == before + 2, 'copies make one datatype')
  end subroutine

  ! More forms than are kept, which differ in one number alone; each of them twice.
  subroutine forms_of_one_dimension
    integer :: a(120), b(120), round, stride, extent, items, first, last
    a = [(1000 * rank + i, i = 1, 120)]
    do round = 1, 2
      do stride = -7, 7
        if (abs(stride) < 2) cycle
        do extent = 14, 16
          do items = extent - 4, extent
            first = merge(3, 118, stride > 0)
            last = first + (extent - 1) * stride
            b = -1
            call MPI_Sendrecv(a(first:last:stride), items, MPI_INTEGER, right, 2, &
                              b(first:last:stride), items, MPI_INTEGER, left, 2, comm, &
                              MPI_STATUS_IGNORE)
            call check(all([(b(first + i * stride) == 1000 * left + first + i * stride, &
                             i = 0, items - 1)]) .and. count(b /= -1) == items, 'one dimension')
          end do
        end do
      end do
    end do
  end subroutine

  subroutine forms_of_three_dimensions
    integer :: a(9, 9, 9), b(9, 9, 9), expected(9, 9, 9), round, x, y, z, nx, ny, nz
    a = reshape([(1000 * rank + i, i = 1, 729)], [9, 9, 9])
    do round = 1, 2
      do x = -2, 2
        do y = -2, 2
          do z = 1, 4
            if (x == 0 .or. y == 0) cycle
            nx = 4 / abs(x)
            ny = 4 / abs(y)
            nz = 4 / z
            b = -1
            call MPI_Sendrecv(a(5:5+(nx-1)*x:x, 5:5+(ny-1)*y:y, 1:1+(nz-1)*z:z), nx * ny * nz, &
                              MPI_INTEGER, right, 3, &
                              b(5:5+(nx-1)*x:x, 5:5+(ny-1)*y:y, 1:1+(nz-1)*z:z), nx * ny * nz, &
                              MPI_INTEGER, left, 3, comm, MPI_STATUS_IGNORE)
            expected = -1
            call put(expected, x, y, z, nx, ny, nz)
            call check(all(b == expected), 'three dimensions')
          end do
        end do
      end do
    end do
  end subroutine

  subroutine put(into, x, y, z, nx, ny, nz)
    integer, intent(inout) :: into(9, 9, 9)
    integer, intent(in) :: x, y, z, nx, ny, nz
    integer :: ix, iy, iz
    do iz = 0, nz - 1
      do iy = 0, ny - 1
        do ix = 0, nx - 1
          into(5 + ix * x, 5 + iy * y, 1 + iz * z) = &
            1000 * left + 5 + ix * x + 9 * (4 + iy * y) + 81 * (iz * z)
        end do
      end do
    end do
  end subroutine

  ! As many elements with as long strides, of rows of other lengths.
  subroutine lengths_of_rows
    integer :: a(8, 12), b(8, 12), round, length
    do round = 1, 2
      do length = 1, 4
        a = reshape([(1000 * rank + i, i = 1, 96)], [8, 12])
        b = -1
        call MPI_Sendrecv(a(1:2*length-1:2, 1:12), 12, MPI_INTEGER, right, 7, &
                          b(1:2*length-1:2, 1:12), 12, MPI_INTEGER, left, 7, comm, &
                          MPI_STATUS_IGNORE)
        call check(all([(b(1 + 2 * mod(i, length), 1 + i / length) == &
                         1000 * left + 1 + 2 * mod(i, length) + 8 * (i / length), i = 0, 11)]) &
                   .and. count(b /= -1) == 12, 'the length of a row')
        b = a
        call MPI_Allreduce(MPI_IN_PLACE, b(1:2*length-1:2, 1:12/length), length * (12 / length), &
                           MPI_INTEGER, MPI_MAX, comm)
        call check(all(b(1:2*length-1:2, 1:12/length) == &
                       a(1:2*length-1:2, 1:12/length) + 1000 * (n - 1 - rank)), 'a copy of rows')
        b(1:2*length-1:2, 1:12/length) = a(1:2*length-1:2, 1:12/length)
        call check(all(b == a), 'nothing beside rows')
      end do
    end do
  end subroutine

  ! The same section and count, with another datatype, and with another use.
  subroutine other_items
    real(8) :: a(24), b(24)
    real(4) :: e(48), f(48)
    integer :: c(4, n), d(4, n), round
    a = [(1000d0 * rank + i, i = 1, 24)]
    e = [(1000 * rank + i, i = 1, 48)]
    do round = 1, 2
      b = -1
      call MPI_Sendrecv(a(1:24:4), 6, MPI_DOUBLE_PRECISION, right, 4, b(1:24:4), 6, &
                        MPI_DOUBLE_PRECISION, left, 4, comm, MPI_STATUS_IGNORE)
      call check(all(b(1:24:4) == [(1000d0 * left + i, i = 1, 24, 4)]) .and. count(b /= -1) == 6, &
                 'numbers')
      b = -1
      call MPI_Sendrecv(a(1:24:4), 6, MPI_REAL, right, 4, b(1:24:4), 6, MPI_REAL, left, 4, comm, &
                        MPI_STATUS_IGNORE)
      call check(all(b(1:12:4) == [(1000d0 * left + i, i = 1, 12, 4)]) .and. count(b /= -1) == 3, &
                 'halves of numbers')
      f = -1
      call MPI_Sendrecv(e(1:48:8), 6, MPI_REAL, right, 4, f(1:48:8), 6, MPI_REAL, left, 4, comm, &
                        MPI_STATUS_IGNORE)
      call check(all(f(1:48:8) == [(1000 * left + i, i = 1, 48, 8)]) .and. count(f /= -1) == 6, &
                 'as many shorter numbers, as far apart')
      ! One block for all, and one for each rank.
      c = rank
      d = -1
      call MPI_Bcast(c(2, :), 1, MPI_INTEGER, n - 1, comm)
      call check(c(2, 1) == n - 1 .and. count(c == rank) >= 4 * n - 1, 'one block')
      c = rank
      call MPI_Allgather(c(2, 1), 1, MPI_INTEGER, d(2, :), 1, MPI_INTEGER, comm)
      call check(all(d(2, :) == [(i, i = 0, n - 1)]) .and. count(d /= -1) == n, 'blocks')
    end do
  end subroutine

  ! A program's datatype may have the number of one that was freed before.
  subroutine own_datatypes
    integer :: a(4, 10), b(4, 10), round, sames
    integer, save :: number = -1
    type(MPI_Datatype) :: type
    a = reshape([(1000 * rank + i, i = 1, 40)], [4, 10])
    sames = 0
    do round = 1, 10
      ! Both of two numbers; and the first one of two.
      if (mod(round, 2) == 1) then
        call MPI_Type_contiguous(2, MPI_INTEGER, type)
      else
        call MPI_Type_create_resized(MPI_INTEGER, 0_MPI_ADDRESS_KIND, 8_MPI_ADDRESS_KIND, type)
      end if
      call MPI_Type_commit(type)
      if (type%MPI_VAL == number) sames = sames + 1
      number = type%MPI_VAL
      b = -1
      call MPI_Sendrecv(a(2:3, :), 10, type, right, 5, b(2:3, :), 10, type, left, 5, comm, &
                        MPI_STATUS_IGNORE)
      call MPI_Type_free(type)
      call check(all(b(2, :) == [(1000 * left + i, i = 2, 40, 4)]), 'the first of each item')
      if (mod(round, 2) == 1) then
        call check(all(b(3, :) == [(1000 * left + i, i = 3, 40, 4)]), 'the second of each item')
      else
        call check(all(b(3, :) == -1), 'nothing but the first of each item')
      end if
    end do
    call check(sames > 0, 'a datatype with the number of another')
  end subroutine

  subroutine short_messages
    integer :: a(30), b(30), round, error, class
    type(MPI_Status) :: status
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
    a = [(1000 * rank + i, i = 1, 30)]
    do round = 1, 2
      ! Fewer than there is room for: what was not received stays.
      b = -1
      call MPI_Sendrecv(a(1:30:2), 5, MPI_INTEGER, right, 6, b(30:1:-2), 15, MPI_INTEGER, left, 6, &
                        comm, status)
      call MPI_Get_count(status, MPI_INTEGER, i)
      call check(i == 5, 'the count of a short message')
      call check(all(b(30:21:-2) == [(1000 * left + i, i = 1, 10, 2)]) .and. count(b /= -1) == 5, &
                 'a short message')
      ! More than there is room for: nothing beside it changes.
      b = -1
      call MPI_Sendrecv(a(1:30:2), 15, MPI_INTEGER, right, 6, b(1:30:2), 5, MPI_INTEGER, left, 6, &
                        comm, status, error)
      call MPI_Error_class(error, class)
      call check(class == MPI_ERR_TRUNCATE, 'a message that is too long')
      call check(all(b(2:30:2) == -1) .and. all(b(11:) == -1), 'nothing beside what is too long')
      ! Nothing comes.
      b = -1
      call MPI_Recv(b(1:30:2), 15, MPI_INTEGER, MPI_PROC_NULL, 6, comm, status)
      call check(all(b == -1), 'no message')
    end do
  end subroutine

  ! They share what is kept, and replace it for each other.
  subroutine several_threads
    integer :: wrong
    wrong = 0
    !$omp parallel num_threads(3) reduction(+:wrong)
    wrong = wrong + wrongs_of(omp_get_thread_num())
    !$omp end parallel
    call check(wrong == 0, 'sections of several threads')
  end subroutine

  integer function wrongs_of(thread)
    integer, intent(in) :: thread
    integer :: a(620), b(620), round, stride, items, j
    type(MPI_Request) :: own(2)
    wrongs_of = 0
    a = [(1000 * rank + 100000 * thread + j, j = 1, 620)]
    do round = 0, 399
      stride = 2 + mod(11 * round + 20 * thread, 60)
      items = 8 + mod(round, 3)
      b = -1
      if (mod(round, 2) == 0) then
        call MPI_Sendrecv(a(1:620:stride), items, MPI_INTEGER, right, 100 + thread, &
                          b(1:620:stride), items, MPI_INTEGER, left, 100 + thread, comm, &
                          MPI_STATUS_IGNORE)
      else
        call MPI_Irecv(b(1:620:stride), items, MPI_INTEGER, left, 100 + thread, comm, own(1))
        call MPI_Isend(a(1:620:stride), items, MPI_INTEGER, right, 100 + thread, comm, own(2))
        call MPI_Waitall(2, own, MPI_STATUSES_IGNORE)
      end if
      do j = 1, 1 + (items - 1) * stride, stride
        if (b(j) /= 1000 * left + 100000 * thread + j) wrongs_of = wrongs_of + 1
      end do
      if (count(b /= -1) /= items) wrongs_of = wrongs_of + 1
    end do
  end function
end program

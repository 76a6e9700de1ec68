! Sections of arrays as buffers of mpi_f08, between ranks in a ring: what is sent is picked where it
! is, what is received is put where it belongs, and nothing beside it changes; also by calls that
! return before the data has moved. What no call can do right comes back as MPI_ERR_BUFFER.
module particles
  implicit none
  type particle
    integer :: number
    real(8) :: place(3)
  end type
end module

program sections
  use mpi_f08
  use particles
  use checks
  implicit none
  type(MPI_Comm) :: comm
  integer :: rank, n, left, right, i, j, class, round
  type(MPI_Request) :: request, requests(2)
  type(MPI_Status) :: status
  integer, parameter :: last = 60

  call MPI_Init()
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(comm, n)
  left = mod(rank + n - 1, n)
  right = mod(rank + 1, n)
  call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
  ! The second time, datatypes that are kept serve.
  do round = 1, 2
    call one_dimension
    call fewer_than_there_are
    call several_dimensions
    call many_dimensions
    call without_elements
    call of_assumed_size
    call characters
    call components
    call datatypes_over_several
    call datatypes_with_gaps
    call persistent
    call collectives
    call blocks
    call reductions
    call windows
    call packing
    call partitioned
    call refused
    call addresses
  end do
  call report(rank)
  call MPI_Finalize()

contains

  ! What a rank sends: no two elements are the same.
  function numbers(of, count) result(values)
    integer, intent(in) :: of, count
    integer :: values(count)
    values = [(1000 * of + i, i = 1, count)]
  end function

  subroutine one_dimension
    integer, asynchronous :: a(last), b(last)
    integer :: expected(last)
    a = numbers(rank, last)
    ! Every fifth element, forwards; nothing beside it changes.
    b = -1
    call MPI_Irecv(b(1:last:5), 12, MPI_INTEGER, left, 1, comm, requests(1))
    call MPI_Isend(a(1:last:5), 12, MPI_INTEGER, right, 1, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    expected = -1
    expected(1:last:5) = [(1000 * left + i, i = 1, last, 5)]
    call check(all(b == expected), 'MPI_Isend of every fifth element')
    call MPI_Get_count(status_of_one(), MPI_INTEGER, i)
    call check(i == 2, 'the count of a section')
    ! Backwards.
    b = -1
    call MPI_Irecv(b(last:1:-3), 20, MPI_INTEGER, left, 1, comm, requests(1))
    call MPI_Issend(a(last:1:-3), 20, MPI_INTEGER, right, 1, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    expected = -1
    expected(last:1:-3) = [(1000 * left + i, i = last, 1, -3)]
    call check(all(b == expected), 'a negative stride')
    ! Turned round on its way, and a blocking call.
    b = -1
    call MPI_Sendrecv(a(20:1:-1), 20, MPI_INTEGER, right, 1, b(2:40:2), 20, MPI_INTEGER, left, 1, &
                      comm, status)
    call check(all(b(2:40:2) == [(1000 * left + i, i = 20, 1, -1)]) .and. all(b(1:39:2) == -1) &
               .and. all(b(41:) == -1), 'MPI_Sendrecv of sections')
    b = a
    call MPI_Isendrecv_replace(b(1:last:2), 30, MPI_INTEGER, right, 1, left, 1, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(b(1:last:2) == [(1000 * left + i, i = 1, last, 2)]) .and. &
               all(b(2:last:2) == a(2:last:2)), 'MPI_Isendrecv_replace of a section')
    ! Large counts.
    b = -1
    call MPI_Irecv(b(3::4), 14_MPI_COUNT_KIND, MPI_INTEGER, left, 1, comm, requests(1))
    call MPI_Isend(a(3::4), 14_MPI_COUNT_KIND, MPI_INTEGER, right, 1, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(b(3:55:4) == [(1000 * left + i, i = 3, 55, 4)]) .and. b(59) == -1, &
               'a section of large counts')
  end subroutine

  function status_of_one() result(got)
    type(MPI_Status) :: got
    integer, asynchronous :: c(6), d(6)
    c = 0
    call MPI_Isend(c(1:6:3), 2, MPI_INTEGER, rank, 9, comm, request)
    call MPI_Recv(d(1:6:2), 3, MPI_INTEGER, rank, 9, comm, got)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
  end function

  ! A count that ends within a row.
  subroutine fewer_than_there_are
    integer, asynchronous :: a(6, 8), b(6, 8)
    integer :: count, picked(12), got(12)
    a = reshape(numbers(rank, 48), [6, 8])
    picked = reshape(1000 * (left - rank) + a(1:5:2, 1:7:2), [12])
    do count = 1, 12
      b = -1
      call MPI_Irecv(b(1:5:2, 1:7:2), count, MPI_INTEGER, left, 2, comm, requests(1))
      call MPI_Isend(a(1:5:2, 1:7:2), count, MPI_INTEGER, right, 2, comm, requests(2))
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      got = reshape(b(1:5:2, 1:7:2), [12])
      call check(all(got(:count) == picked(:count)) .and. all(got(count + 1:) == -1), &
                 'fewer elements than the section has')
      b(1:5:2, 1:7:2) = -1
      call check(all(b == -1), 'nothing beside the section')
    end do
  end subroutine

  subroutine several_dimensions
    real(8), asynchronous :: a(5, 6, 7), b(5, 6, 7)
    real(8) :: expected(5, 6, 7)
    a = reshape([(1000d0 * rank + i, i = 1, 210)], [5, 6, 7])
    b = -1
    call exchange(a(2:4, :, :), b(2:4, :, :), 3 * 6 * 7)
    expected = -1
    expected(2:4, :, :) = a(2:4, :, :) + 1000 * (left - rank)
    call check(all(b == expected), 'rows')
    b = -1
    call exchange(a(:, 2:6:2, :), b(:, 2:6:2, :), 5 * 3 * 7)
    expected = -1
    expected(:, 2:6:2, :) = a(:, 2:6:2, :) + 1000 * (left - rank)
    call check(all(b == expected), 'a gap in the second dimension')
    b = -1
    call exchange(a(:, :, 7:1:-2), b(:, :, 7:1:-2), 5 * 6 * 4)
    expected = -1
    expected(:, :, 7:1:-2) = a(:, :, 7:1:-2) + 1000 * (left - rank)
    call check(all(b == expected), 'planes, backwards')
    b = -1
    call exchange(a(5:1:-4, 6:1:-2, 2:7:3), b(5:1:-4, 6:1:-2, 2:7:3), 12)
    expected = -1
    expected(5:1:-4, 6:1:-2, 2:7:3) = a(5:1:-4, 6:1:-2, 2:7:3) + 1000 * (left - rank)
    call check(all(b == expected), 'gaps in three dimensions')
    b = -1
    call exchange(a(3:3, 2:2, :), b(3:3, 2:2, :), 7)
    expected = -1
    expected(3, 2, :) = a(3, 2, :) + 1000 * (left - rank)
    call check(all(b == expected), 'a row across')
    b = -1
    call exchange_of_other_bounds(a(1:5:2, :, 1), b(1:5:2, :, 1))
    call check(all(b(1:5:2, :, 1) == a(1:5:2, :, 1) + 1000 * (left - rank)), 'other bounds')
  end subroutine

  subroutine exchange(send, receive, count)
    real(8), asynchronous, intent(in) :: send(:, :, :)
    real(8), asynchronous, intent(inout) :: receive(:, :, :)
    integer, intent(in) :: count
    call MPI_Irecv(receive, count, MPI_DOUBLE_PRECISION, left, 3, comm, requests(1))
    call MPI_Isend(send, count, MPI_DOUBLE_PRECISION, right, 3, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  end subroutine

  ! Nor are the bounds others after the call.
  subroutine exchange_of_other_bounds(send, receive)
    real(8), asynchronous, intent(in) :: send(-3:, 0:)
    real(8), asynchronous, intent(inout) :: receive(7:, -9:)
    call MPI_Irecv(receive, 18, MPI_DOUBLE_PRECISION, left, 3, comm, requests(1))
    call MPI_Isend(send, 18, MPI_DOUBLE_PRECISION, right, 3, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(lbound(send) == [-3, 0]) .and. all(lbound(receive) == [7, -9]), 'the bounds')
  end subroutine

  subroutine many_dimensions
    integer, asynchronous :: a(2,2,2,2,2,2,2,2,2,2,2,2,2,2,2), b(2,2,2,2,2,2,2,2,2,2,2,2,2,2,2)
    a = reshape(numbers(rank, 32768), shape(a))
    b = -1
    call MPI_Irecv(b(:,1,:,:,2,:,:,:,1,:,:,:,2,:,:), 2048, MPI_INTEGER, left, 4, comm, requests(1))
    call MPI_Isend(a(:,1,:,:,2,:,:,:,1,:,:,:,2,:,:), 2048, MPI_INTEGER, right, 4, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(b(:,1,:,:,2,:,:,:,1,:,:,:,2,:,:) == &
                   a(:,1,:,:,2,:,:,:,1,:,:,:,2,:,:) + 1000 * (left - rank)), 'fifteen dimensions')
    call check(count(b /= -1) == 2048, 'nothing beside fifteen dimensions')
  end subroutine

  subroutine without_elements
    integer, asynchronous :: a(10), nothing(0)
    integer, allocatable, asynchronous :: empty(:, :)
    a = 5
    allocate(empty(0, 3))
    call MPI_Irecv(nothing, 0, MPI_INTEGER, left, 5, comm, requests(1))
    call MPI_Isend(a(5:4), 0, MPI_INTEGER, right, 5, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_Irecv(empty, 0, MPI_INTEGER, left, 5, comm, requests(1))
    call MPI_Isend(a(1:10:3), 0, MPI_INTEGER, right, 5, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_Sendrecv(a(9:2:2), 0, MPI_INTEGER, right, 5, empty(:, 2), 0, MPI_INTEGER, left, 5, &
                      comm, MPI_STATUS_IGNORE)
    call check(all(a == 5), 'no elements')
  end subroutine

  subroutine of_assumed_size
    integer, asynchronous :: a(last), b(last)
    a = numbers(rank, last)
    b = -1
    call exchange_assumed_size(a, b)
    call check(all(b == a + 1000 * (left - rank)), 'arrays of assumed size')
  end subroutine

  subroutine exchange_assumed_size(send, receive)
    integer, asynchronous :: send(6, *), receive(6, *)
    call MPI_Irecv(receive, last, MPI_INTEGER, left, 6, comm, requests(1))
    call MPI_Isend(send, last, MPI_INTEGER, right, 6, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    receive(:, 1:10) = 0
    call MPI_Sendrecv(send(2:6:2, 1:10:3), 12, MPI_INTEGER, right, 6, &
                      receive(2:6:2, 1:10:3), 12, MPI_INTEGER, left, 6, comm, MPI_STATUS_IGNORE)
    call check(all(receive(2:6:2, 1:10:3) == send(2:6:2, 1:10:3) + 1000 * (left - rank)) .and. &
               all(receive(1:5:2, 1:10) == 0) .and. all(receive(:, 2:3) == 0), &
               'a section of an array of assumed size')
    receive(:, 1:10) = send(:, 1:10) + 1000 * (left - rank)
  end subroutine

  ! An element is several items.
  subroutine characters
    character(8), asynchronous :: a(9), b(9)
    a = [(achar(64 + i) // achar(96 + rank + 1) // '------', i = 1, 9)]
    b = '........'
    call MPI_Irecv(b(1:9:4), 24, MPI_CHARACTER, left, 7, comm, requests(1))
    call MPI_Isend(a(1:9:4), 20, MPI_CHARACTER, right, 7, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(b(1) == 'A' // achar(96 + left + 1) // '------' .and. &
               b(5) == 'E' // achar(96 + left + 1) // '------' .and. &
               b(9) == 'I' // achar(96 + left + 1) // '--....', 'strings, and a part of the last')
    call check(all(b([2, 3, 4, 6, 7, 8]) == '........'), 'nothing beside strings')
    ! The compiler packs a part of each string into a temporary of its own.
    b = '........'
    call MPI_Sendrecv(a(1:9:4)(2:3), 6, MPI_CHARACTER, right, 7, b(1:9:4)(3:4), 6, MPI_CHARACTER, &
                      left, 7, comm, MPI_STATUS_IGNORE)
    call check(b(5) == '..' // achar(96 + left + 1) // '-....', 'parts of strings')
  end subroutine

  ! Components are packed by the compiler, too: right in blocking calls, and else refused.
  subroutine components
    type(particle), asynchronous :: a(6), b(6)
    type(MPI_Datatype) :: type
    integer :: error
    do i = 1, 6
      a(i) = particle(100 * rank + i, real([1, 2, 3], 8) * rank)
      b(i) = particle(-1, -1d0)
    end do
    call MPI_Sendrecv(a%number, 6, MPI_INTEGER, right, 8, b%number, 6, MPI_INTEGER, left, 8, comm, &
                      MPI_STATUS_IGNORE)
    call check(all(b%number == [(100 * left + i, i = 1, 6)]) .and. all(b%place(2) == -1), &
               'components')
    call MPI_Isend(a%number, 6, MPI_INTEGER, right, 8, comm, request, error)
    call expect_buffer(error, 'MPI_Isend of what is a temporary')
    call check(request == MPI_REQUEST_NULL, 'no request')
    ! A datatype of whole elements.
    call MPI_Type_contiguous(storage_size(a) / 8, MPI_BYTE, type)
    call MPI_Type_commit(type)
    call MPI_Irecv(b(1:6:2), 3, type, left, 8, comm, requests(1))
    call MPI_Isend(a(2:6:2), 3, type, right, 8, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(b(1:6:2)%number == [(100 * left + i, i = 2, 6, 2)]) .and. &
               all(b(1:6:2)%place(3) == 3 * left) .and. b(2)%place(1) == -1, 'derived types')
    call MPI_Type_free(type)
  end subroutine

  ! An item goes over the ends of elements, and of rows.
  subroutine datatypes_over_several
    integer, asynchronous :: a(7, 4), b(7, 4)
    type(MPI_Datatype) :: type
    integer :: got(16)
    a = reshape(numbers(rank, 28), [7, 4])
    b = -1
    call MPI_Irecv(b(1:7:2, :), 8, MPI_2INTEGER, left, 10, comm, requests(1))
    call MPI_Isend(a(1:7:2, :), 8, MPI_2INTEGER, right, 10, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(b(1:7:2, :) == a(1:7:2, :) + 1000 * (left - rank)) .and. all(b(2:6:2, :) == -1), &
               'items of two elements')
    call MPI_Type_contiguous(5, MPI_INTEGER, type)
    call MPI_Type_commit(type)
    b = -1
    call MPI_Irecv(b(1:7:2, :), 3, type, left, 10, comm, requests(1))
    call MPI_Isend(a(1:7:2, :), 3, type, right, 10, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    got = reshape(b(1:7:2, :), [16])
    call check(all(got(:15) == reshape(a(1:7:2, :) + 1000 * (left - rank), [15])) .and. &
               got(16) == -1 .and. all(b(2:6:2, :) == -1), 'items of five elements')
    call MPI_Type_free(type)
  end subroutine

  ! A datatype picks from the section as from an array without gaps.
  subroutine datatypes_with_gaps
    integer, asynchronous :: a(40), b(40), c(20)
    type(MPI_Datatype) :: type
    integer :: picked(20)
    a = numbers(rank, 40)
    b = -1
    ! Of 20 elements, the numbers 1, 2, 5, 6, 9, 10; then 11, 12, 15, 16, 19, 20.
    call MPI_Type_vector(3, 2, 4, MPI_INTEGER, type)
    call MPI_Type_commit(type)
    call MPI_Irecv(b(1:40:2), 2, type, left, 11, comm, requests(1))
    call MPI_Isend(a(1:40:2), 2, type, right, 11, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    picked = a(1:40:2) + 1000 * (left - rank)
    picked([3, 4, 7, 8, 13, 14, 17, 18]) = -1
    call check(all(b(1:40:2) == picked) .and. all(b(2:40:2) == -1), 'a vector of a section')
    call MPI_Isend(a(1:40:2), 2, type, right, 11, comm, request)
    call MPI_Recv(c, 12, MPI_INTEGER, left, 11, comm, MPI_STATUS_IGNORE)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(c(:12) == pack(picked, picked /= -1)), 'in its order')
    call MPI_Type_free(type)
    ! Backwards within an item: the second element, then the first.
    call MPI_Type_indexed(2, [1, 1], [1, 0], MPI_INTEGER, type)
    call MPI_Type_commit(type)
    call MPI_Isend(a(1:40:2), 10, type, right, 11, comm, request)
    call MPI_Recv(c, 20, MPI_INTEGER, left, 11, comm, MPI_STATUS_IGNORE)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(c(1:20:2) == a(3:40:4) + 1000 * (left - rank)) .and. &
               all(c(2:20:2) == a(1:40:4) + 1000 * (left - rank)), 'the order of a datatype')
    call MPI_Type_free(type)
  end subroutine

  subroutine persistent
    integer, asynchronous :: a(4, 9), b(4, 9)
    call MPI_Send_init(a(2, :), 9, MPI_INTEGER, right, 12, comm, requests(1))
    call MPI_Recv_init(b(3, :), 9, MPI_INTEGER, left, 12, comm, requests(2))
    do j = 1, 3
      a = rank + j
      b = -1
      call MPI_Startall(2, requests)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      call check(all(b(3, :) == left + j) .and. all(b([1, 2, 4], :) == -1), 'a persistent section')
    end do
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine

  subroutine collectives
    integer, asynchronous :: a(3, 2 * n), b(3, 2 * n)
    a = rank
    call MPI_Ibcast(a(2, :), 2 * n, MPI_INTEGER, 0, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(a(2, :) == 0) .and. all(a([1, 3], :) == rank), 'MPI_Ibcast')
    ! Items that are equally far from each other may be anywhere.
    b = -1
    a(1, :) = [(10 * rank + i, i = 1, 2 * n)]
    call MPI_Iallgatherv(a(1, 1:2), 2, MPI_INTEGER, b(2, :), [(2, i = 1, n)], &
                         [(2 * n - 2 * i, i = 1, n)], MPI_INTEGER, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all([(b(2, 2 * n - 2 * i + 1) == 10 * (i - 1) + 1, i = 1, n)]) .and. &
               all([(b(2, 2 * n - 2 * i + 2) == 10 * (i - 1) + 2, i = 1, n)]) .and. &
               all(b([1, 3], :) == -1), 'MPI_Iallgatherv')
    b = -1
    call MPI_Ialltoallv(a(1, :), [(2, i = 1, n)], [(2 * i - 2, i = 1, n)], MPI_INTEGER, b(1, :), &
                        [(2, i = 1, n)], [(2 * i - 2, i = 1, n)], MPI_INTEGER, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all([(b(1, 2 * i - 1) == 10 * (i - 1) + 2 * rank + 1, i = 1, n)]) .and. &
               all(b(2:3, :) == -1), 'MPI_Ialltoallv')
    ! Displacements in bytes, and an operation: by a copy.
    b = -1
    call MPI_Alltoallw(a(1, :), [(1, i = 1, n)], [(4 * i - 4, i = 1, n)], [(MPI_INTEGER, i = 1, n)], &
                       b(3, :), [(1, i = 1, n)], [(8 * i - 8, i = 1, n)], &
                       [(MPI_INTEGER, i = 1, n)], comm)
    call check(all(b(3, 1::2) == [(10 * i + rank + 1, i = 0, n - 1)]) .and. &
               all(b(3, 2::2) == -1) .and. all(b(1:2, :) == -1), 'MPI_Alltoallw')
  end subroutine

  ! So many elements of each rank, of which there are several in the section.
  subroutine blocks
    integer, asynchronous :: a(4, n), b(4, n), c(6, n), d(3, 2 * n)
    a = reshape([(10 * rank + i, i = 1, 4 * n)], [4, n])
    b = -1
    call MPI_Iallgather(a(2, 1:1), 1, MPI_INTEGER, b(3, :), 1, MPI_INTEGER, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(b(3, :) == [(10 * i + 2, i = 0, n - 1)]) .and. all(b([1, 2, 4], :) == -1), &
               'MPI_Iallgather')
    ! Half a column of each.
    c = -1
    call MPI_Iallgather(a(2:3, 1), 2, MPI_INTEGER, c(4:5, :), 2, MPI_INTEGER, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(c(4, :) == [(10 * i + 2, i = 0, n - 1)]) .and. &
               all(c(5, :) == [(10 * i + 3, i = 0, n - 1)]) .and. all(c([1, 2, 3, 6], :) == -1), &
               'MPI_Iallgather of columns')
    ! Blocks that end within a row are copied.
    d = -1
    if (rank == 0) then
      call MPI_Gather(a(1:3, 1), 3, MPI_INTEGER, d(1:3:2, 1:(3*n+1)/2), 3, MPI_INTEGER, 0, comm)
      call check(all([(d(1 + 2 * mod(i, 2), 1 + i / 2) == 10 * (i / 3) + mod(i, 3) + 1, &
                       i = 0, 3 * n - 1)]) .and. all(d(2, :) == -1), 'MPI_Gather within rows')
    else
      call MPI_Gather(a(1:3, 1), 3, MPI_INTEGER, d(1:3:2, 1:2), -5, MPI_DATATYPE_NULL, 0, comm)
      call check(all(d == -1), 'MPI_Gather, not at its root')
    end if
    b = -1
    call MPI_Scatter(a(4, n:1:-1), 1, MPI_INTEGER, b(1, 1), 1, MPI_INTEGER, n - 1, comm)
    call check(b(1, 1) == 10 * (n - 1) + 4 * (n - rank), 'MPI_Scatter, backwards')
    b = -1
    call MPI_Alltoall(a(1, :), 1, MPI_INTEGER, b(4, n:1:-1), 1, MPI_INTEGER, comm)
    call check(all(b(4, n:1:-1) == [(10 * i + 4 * rank + 1, i = 0, n - 1)]) .and. &
               all(b(1:3, :) == -1), 'MPI_Alltoall')
  end subroutine

  subroutine reductions
    integer, asynchronous :: a(3, 5), b(3, 5), c(5)
    integer :: error
    a = rank
    a(2, :) = [(i + rank, i = 1, 5)]
    b = -1
    call MPI_Allreduce(a(2, :), b(1, :), 5, MPI_INTEGER, MPI_SUM, comm)
    call check(all(b(1, :) == [(n * i + n * (n - 1) / 2, i = 1, 5)]) .and. all(b(2:, :) == -1), &
               'MPI_Allreduce')
    call MPI_Allreduce(MPI_IN_PLACE, a(2, :), 5, MPI_INTEGER, MPI_SUM, comm)
    call check(all(a(2, :) == b(1, :)) .and. all(a([1, 3], :) == rank), 'MPI_Allreduce in place')
    c = 1
    call MPI_Reduce_local(c, b(1, :), 5, MPI_INTEGER, MPI_SUM)
    call check(all(b(1, :) == a(2, :) + 1), 'MPI_Reduce_local')
    ! There is no datatype for it, and a copy would be gone.
    call MPI_Iallreduce(a(2, :), c, 5, MPI_INTEGER, MPI_SUM, comm, request, error)
    call expect_buffer(error, 'MPI_Iallreduce')
    call check(request == MPI_REQUEST_NULL .and. all(c == 1), 'MPI_Iallreduce begins nothing')
  end subroutine

  subroutine windows
    integer, asynchronous :: memory(20), a(4, 5), old(3, 2)
    type(MPI_Win) :: win
    integer :: error
    call MPI_Win_create(memory, 80_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, comm, win)
    memory = 1
    a = reshape([(100 * rank + i, i = 1, 20)], [4, 5])
    call MPI_Win_fence(0, win)
    call MPI_Put(a(2, :), 5, MPI_INTEGER, right, 3_MPI_ADDRESS_KIND, 5, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(memory(4:8) == [(100 * left + 4 * i - 2, i = 1, 5)]) .and. &
               all(memory([1, 2, 3, 9, 20]) == 1), 'MPI_Put')
    a = -1
    call MPI_Win_fence(0, win)
    call MPI_Get(a(4, 5:1:-1), 5, MPI_INTEGER, right, 3_MPI_ADDRESS_KIND, 5, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(a(4, 5:1:-1) == [(100 * rank + 4 * i - 2, i = 1, 5)]) .and. all(a(:3, :) == -1), &
               'MPI_Get')
    a = 2
    call MPI_Win_fence(0, win)
    call MPI_Accumulate(a(1, :), 5, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, 5, MPI_INTEGER, &
                        MPI_SUM, win)
    call MPI_Win_fence(0, win)
    call check(all(memory(1:3) == 3), 'MPI_Accumulate')
    call MPI_Barrier(comm)
    old = -1
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win)
    call MPI_Fetch_and_op(a(1, 1:5:2), old(2, :), MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, MPI_SUM, &
                          win)
    call MPI_Win_unlock(right, win)
    call check(old(2, 1) == 3 .and. count(old /= -1) == 1, 'MPI_Fetch_and_op')
    call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN)
    call MPI_Win_fence(0, win)
    call MPI_Accumulate(a(1, :), 2, MPI_2INTEGER, right, 0_MPI_ADDRESS_KIND, 2, MPI_2INTEGER, &
                        MPI_MAXLOC, win, error)
    call expect_buffer(error, 'MPI_Accumulate of pairs')
    call MPI_Win_fence(0, win)
    call MPI_Win_free(win)
  end subroutine

  subroutine packing
    integer :: a(3, 4), b(3, 4), position
    character(1) :: room(64, 2)
    a = reshape([(i, i = 1, 12)], [3, 4])
    b = -1
    room = '.'
    position = 0
    call MPI_Pack(a(2, :), 4, MPI_INTEGER, room(1:64:2, 1), 32, position, comm)
    call check(position == 16 .and. all(room(2:64:2, 1) == '.') .and. all(room(:, 2) == '.'), &
               'MPI_Pack')
    position = 0
    call MPI_Unpack(room(1:64:2, 1), 32, position, b(3, :), 4, MPI_INTEGER, comm)
    call check(all(b(3, :) == a(2, :)) .and. all(b(1:2, :) == -1), 'MPI_Unpack')
  end subroutine

  subroutine partitioned
    integer, asynchronous :: a(3, 8), b(2, 8)
    integer :: error
    a = rank
    b = -1
    call MPI_Psend_init(a(2, :), 4, 2_MPI_COUNT_KIND, MPI_INTEGER, right, 40, comm, MPI_INFO_NULL, &
                        requests(1))
    call MPI_Precv_init(b(1, :), 4, 2_MPI_COUNT_KIND, MPI_INTEGER, left, 40, comm, MPI_INFO_NULL, &
                        requests(2))
    call MPI_Startall(2, requests)
    call MPI_Pready_range(0, 3, requests(1))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(b(1, :) == left) .and. all(b(2, :) == -1), 'partitions of a section')
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
    call MPI_Psend_init(a(1:3:2, 1:8:2), 4, 2_MPI_COUNT_KIND, MPI_INTEGER, right, 40, comm, &
                        MPI_INFO_NULL, request, error)
    call expect_buffer(error, 'partitions within rows')
  end subroutine

  ! What has to be one piece of memory.
  subroutine refused
    integer, asynchronous :: a(20), b(3, 5)
    type(MPI_Win) :: win
    integer :: error
    call MPI_Win_create(a(1:20:2), 40_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, comm, win, error)
    call expect_buffer(error, 'MPI_Win_create')
    call check(win == MPI_WIN_NULL, 'no window')
    call MPI_Comm_attach_buffer(comm, a(1:20:2), 40, error)
    call expect_buffer(error, 'MPI_Comm_attach_buffer')
    b = 0
    call MPI_Iallgather(a(1), 1, MPI_INTEGER, b(1:2, :), 1, MPI_INTEGER, comm, request, error)
    call expect_buffer(error, 'MPI_Iallgather within rows')
  end subroutine

  subroutine addresses
    integer :: a(20)
    integer(MPI_ADDRESS_KIND) :: whole, part
    call MPI_Get_address(a, whole)
    call MPI_Get_address(a(3:20:4), part)
    call check(MPI_Aint_diff(part, whole) == 8, 'MPI_Get_address')
    call MPI_F_sync_reg(a(1:20:2))
  end subroutine

  subroutine expect_buffer(error, what)
    integer, intent(in) :: error
    character(*), intent(in) :: what
    call MPI_Error_class(error, class)
    call check(class == MPI_ERR_BUFFER, what//' refuses what it cannot use')
  end subroutine
end program

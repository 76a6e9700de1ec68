! Chapters 3, 4 and 13 in Fortran, between two ranks: each procedure once at least.
program messages
  USE_LINE
  use checks
  implicit none
  INCLUDE_LINE
  integer :: ierr, rank, peer, comm
  integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 4)
  integer :: requests(4), request, message
  integer, asynchronous :: a(8), b(8)
  integer :: i, n, count, index, indices(4)
  integer(MPI_COUNT_KIND) :: long_count
  integer(MPI_ADDRESS_KIND) :: state
  logical :: flag
  character(8) :: text
  character(8) :: texts(3)
  integer :: buffer(4096)
  external :: query, free, cancel
  integer :: calls(3)
  common /callback_counts/ calls

  call MPI_Init(ierr)
  call check(ierr == MPI_SUCCESS, 'MPI_Init')
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank, ierr)
  peer = 1 - rank
  a = [(100 * rank + i, i = 1, 8)]
  call blocking
  call nonblocking
  call persistent
  call completion
  call probing
  call kinds_of_buffers
  call buffered
  call partitioned
  call generalized
  call failing
  call report(rank)
  call MPI_Finalize(ierr)

contains

  logical function came(what)
    integer, intent(in) :: what(:)
    came = all(what == [(100 * peer + i, i = 1, size(what))])
  end function

  ! Sends in one way from rank 0, receives at rank 1, and back.
  subroutine blocking
    b = 0
    if (rank == 0) then
      call MPI_Send(a, 8, MPI_INTEGER, peer, 1, comm, ierr)
      call MPI_Ssend(a, 8, MPI_INTEGER, peer, 2, comm, ierr)
      call MPI_Recv(b, 8, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, status, ierr)
      call check(came(b) .and. ierr == 0, 'MPI_Recv')
      call check(status(MPI_SOURCE) == 1 .and. status(MPI_TAG) == 3, 'a status')
    else
      call MPI_Recv(b, 8, MPI_INTEGER, peer, 1, comm, MPI_STATUS_IGNORE, ierr)
      call check(came(b), 'MPI_Send')
      b = 0
      call MPI_Recv(b, 8, MPI_INTEGER, peer, 2, comm, status, ierr)
      call check(came(b), 'MPI_Ssend')
      call MPI_Get_count(status, MPI_INTEGER, count, ierr)
      call check(count == 8, 'MPI_Get_count')
      call MPI_Get_elements(status, MPI_INTEGER, count, ierr)
      call check(count == 8, 'MPI_Get_elements')
      call MPI_Get_elements_x(status, MPI_INTEGER, long_count, ierr)
      call check(long_count == 8, 'MPI_Get_elements_x')
      call MPI_Test_cancelled(status, flag, ierr)
      call check(.not. flag, 'MPI_Test_cancelled')
      call MPI_Status_get_source(status, n, ierr)
      call check(n == 0, 'MPI_Status_get_source')
      call MPI_Status_get_tag(status, n, ierr)
      call check(n == 2, 'MPI_Status_get_tag')
      call MPI_Status_set_source(status, 5, ierr)
      call MPI_Status_set_tag(status, 6, ierr)
      call MPI_Status_set_error(status, MPI_ERR_TAG, ierr)
      call MPI_Status_get_error(status, n, ierr)
      call check(all(status(1:3) == [5, 6, n]) .and. n == MPI_ERR_TAG, 'MPI_Status_set_*')
      call MPI_Status_set_elements(status, MPI_INTEGER, 3, ierr)
      call MPI_Get_count(status, MPI_INTEGER, count, ierr)
      call check(count == 3, 'MPI_Status_set_elements')
      call MPI_Status_set_elements_x(status, MPI_INTEGER, 4_MPI_COUNT_KIND, ierr)
      call MPI_Get_count(status, MPI_INTEGER, count, ierr)
      call check(count == 4, 'MPI_Status_set_elements_x')
      call MPI_Status_set_cancelled(status, .true., ierr)
      call MPI_Test_cancelled(status, flag, ierr)
      call check(flag .eqv. .true., 'MPI_Status_set_cancelled')
      call MPI_Send(a, 8, MPI_INTEGER, peer, 3, comm, ierr)
    end if
    b = 0
    call MPI_Sendrecv(a, 8, MPI_INTEGER, peer, 4, b, 8, MPI_INTEGER, peer, 4, comm, status, ierr)
    call check(came(b), 'MPI_Sendrecv')
    b = a
    call MPI_Sendrecv_replace(b, 8, MPI_INTEGER, peer, 5, peer, 5, comm, MPI_STATUS_IGNORE, ierr)
    call check(came(b), 'MPI_Sendrecv_replace')
    ! A ready send: its receive is posted before.
    b = 0
    if (rank == 1) then
      call MPI_Irecv(b, 8, MPI_INTEGER, peer, 6, comm, request, ierr)
      call MPI_Barrier(comm, ierr)
      call MPI_Wait(request, status, ierr)
      call check(came(b) .and. request == MPI_REQUEST_NULL, 'MPI_Rsend')
    else
      call MPI_Barrier(comm, ierr)
      call MPI_Rsend(a, 8, MPI_INTEGER, peer, 6, comm, ierr)
    end if
  end subroutine

  subroutine receive_one(what)
    character(*), intent(in) :: what
    b = 0
    call MPI_Recv(b, 8, MPI_INTEGER, peer, 7, comm, MPI_STATUS_IGNORE, ierr)
    call check(came(b), what)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call check(ierr == 0 .and. request == MPI_REQUEST_NULL, what//', waited for')
  end subroutine

  subroutine nonblocking
    call MPI_Isend(a, 8, MPI_INTEGER, peer, 7, comm, request, ierr)
    call receive_one('MPI_Isend')
    call MPI_Issend(a, 8, MPI_INTEGER, peer, 7, comm, request, ierr)
    call receive_one('MPI_Issend')
    b = 0
    call MPI_Irecv(b, 8, MPI_INTEGER, peer, 8, comm, requests(1), ierr)
    call MPI_Barrier(comm, ierr)
    call MPI_Irsend(a, 8, MPI_INTEGER, peer, 8, comm, requests(2), ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    call check(came(b) .and. all(requests(1:2) == MPI_REQUEST_NULL), 'MPI_Irsend, MPI_Irecv')
    b = 0
    call MPI_Isendrecv(a, 8, MPI_INTEGER, peer, 9, b, 8, MPI_INTEGER, peer, 9, comm, request, ierr)
    call MPI_Wait(request, status, ierr)
    call check(came(b), 'MPI_Isendrecv')
    b = a
    call MPI_Isendrecv_replace(b, 8, MPI_INTEGER, peer, 9, peer, 9, comm, request, ierr)
    call MPI_Wait(request, status, ierr)
    call check(came(b), 'MPI_Isendrecv_replace')
  end subroutine

  subroutine persistent
    call MPI_Send_init(a, 8, MPI_INTEGER, peer, 10, comm, requests(1), ierr)
    call MPI_Recv_init(b, 8, MPI_INTEGER, peer, 10, comm, requests(2), ierr)
    do n = 1, 2
      b = 0
      call MPI_Start(requests(2), ierr)
      call MPI_Start(requests(1), ierr)
      call MPI_Waitall(2, requests, statuses, ierr)
      call check(came(b) .and. statuses(MPI_TAG, 2) == 10, 'MPI_Send_init, MPI_Start')
    end do
    call MPI_Request_free(requests(1), ierr)
    call MPI_Ssend_init(a, 8, MPI_INTEGER, peer, 10, comm, requests(1), ierr)
    b = 0
    call MPI_Startall(2, requests, ierr)
    call MPI_Waitall(2, requests, statuses, ierr)
    call check(came(b), 'MPI_Ssend_init, MPI_Startall')
    call MPI_Request_free(requests(1), ierr)
    call MPI_Rsend_init(a, 8, MPI_INTEGER, peer, 10, comm, requests(1), ierr)
    b = 0
    call MPI_Start(requests(2), ierr)
    call MPI_Barrier(comm, ierr)
    call MPI_Start(requests(1), ierr)
    call MPI_Waitall(2, requests, statuses, ierr)
    call check(came(b), 'MPI_Rsend_init')
    call MPI_Request_free(requests(1), ierr)
    call MPI_Request_free(requests(2), ierr)
    call check(all(requests(1:2) == MPI_REQUEST_NULL), 'MPI_Request_free')
  end subroutine

  subroutine begin_three(tag)
    integer, intent(in) :: tag
    b = 0
    do n = 1, 3
      call MPI_Irecv(b(n), 1, MPI_INTEGER, peer, tag + n, comm, requests(n), ierr)
    end do
    call MPI_Barrier(comm, ierr)
  end subroutine

  ! Indices count from 1.
  subroutine completion
    call begin_three(20)
    call MPI_Testany(3, requests, index, flag, status, ierr)
    call check(.not. flag .and. index == MPI_UNDEFINED, 'MPI_Testany of none')
    call MPI_Testsome(3, requests, count, indices, statuses, ierr)
    call check(count == 0, 'MPI_Testsome of none')
    call MPI_Request_get_status_any(3, requests, index, flag, status, ierr)
    call check(.not. flag .and. index == MPI_UNDEFINED, 'MPI_Request_get_status_any of none')
    call MPI_Testall(3, requests, flag, statuses, ierr)
    call check(.not. flag, 'MPI_Testall of none')
    call MPI_Barrier(comm, ierr)
    call MPI_Send(a(2), 1, MPI_INTEGER, peer, 22, comm, ierr)
    call MPI_Waitany(3, requests, index, status, ierr)
    call check(index == 2 .and. status(MPI_TAG) == 22 .and. b(2) == 100 * peer + 2, 'MPI_Waitany')
    call MPI_Barrier(comm, ierr)
    call MPI_Send(a(3), 1, MPI_INTEGER, peer, 23, comm, ierr)
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status_any(3, requests, index, flag, status, ierr)
    end do
    call check(index == 3 .and. status(MPI_TAG) == 23, 'MPI_Request_get_status_any')
    call MPI_Request_get_status_some(3, requests, count, indices, statuses, ierr)
    call check(count == 1 .and. indices(1) == 3, 'MPI_Request_get_status_some')
    call MPI_Request_get_status(requests(3), flag, status, ierr)
    call check(flag, 'MPI_Request_get_status')
    call MPI_Request_get_status_all(2, requests(2), flag, statuses, ierr)
    call check(flag .and. statuses(MPI_TAG, 2) == 23, 'MPI_Request_get_status_all')
    call MPI_Testany(3, requests, index, flag, status, ierr)
    call check(flag .and. index == 3 .and. requests(3) == MPI_REQUEST_NULL, 'MPI_Testany')
    call MPI_Barrier(comm, ierr)
    call MPI_Send(a(1), 1, MPI_INTEGER, peer, 21, comm, ierr)
    count = 0
    do while (count == 0)
      call MPI_Testsome(3, requests, count, indices, statuses, ierr)
    end do
    call check(count == 1 .and. indices(1) == 1 .and. statuses(MPI_TAG, 1) == 21, 'MPI_Testsome')
    call MPI_Waitsome(3, requests, count, indices, statuses, ierr)
    call check(count == MPI_UNDEFINED, 'MPI_Waitsome of null requests')
    call MPI_Waitany(3, requests, index, status, ierr)
    call check(index == MPI_UNDEFINED, 'MPI_Waitany of null requests')
    call begin_three(30)
    do n = 1, 3
      call MPI_Send(a(n), 1, MPI_INTEGER, peer, 30 + n, comm, ierr)
    end do
    n = 0
    do while (n < 3)
      call MPI_Waitsome(3, requests, count, indices, MPI_STATUSES_IGNORE, ierr)
      call check(count >= 1 .and. all(indices(1:count) >= 1 .and. indices(1:count) <= 3), &
                 'MPI_Waitsome')
      n = n + count
    end do
    call check(came(b(1:3)), 'MPI_Waitsome of all')
    call begin_three(40)
    do n = 1, 3
      call MPI_Send(a(n), 1, MPI_INTEGER, peer, 40 + n, comm, ierr)
    end do
    flag = .false.
    do while (.not. flag)
      call MPI_Testall(3, requests, flag, statuses, ierr)
    end do
    call check(came(b(1:3)) .and. statuses(MPI_TAG, 3) == 43, 'MPI_Testall')
    call MPI_Irecv(b, 1, MPI_INTEGER, peer, 50, comm, request, ierr)
    call MPI_Test(request, flag, status, ierr)
    call check(.not. flag, 'MPI_Test')
    call MPI_Cancel(request, ierr)
    call MPI_Wait(request, status, ierr)
    call MPI_Test_cancelled(status, flag, ierr)
    call check(flag, 'MPI_Cancel')
  end subroutine

  subroutine probing
    call MPI_Isend(a, 8, MPI_INTEGER, peer, 60, comm, request, ierr)
    call MPI_Probe(peer, 60, comm, status, ierr)
    call MPI_Get_count(status, MPI_INTEGER, count, ierr)
    call check(count == 8, 'MPI_Probe')
    flag = .false.
    do while (.not. flag)
      call MPI_Iprobe(peer, 60, comm, flag, status, ierr)
    end do
    call check(status(MPI_TAG) == 60, 'MPI_Iprobe')
    call MPI_Mprobe(peer, 60, comm, message, status, ierr)
    b = 0
    call MPI_Mrecv(b, 8, MPI_INTEGER, message, status, ierr)
    call check(came(b) .and. message == MPI_MESSAGE_NULL, 'MPI_Mprobe, MPI_Mrecv')
    call MPI_Wait(request, status, ierr)
    call MPI_Isend(a, 8, MPI_INTEGER, peer, 61, comm, request, ierr)
    flag = .false.
    do while (.not. flag)
      call MPI_Improbe(peer, 61, comm, flag, message, status, ierr)
    end do
    b = 0
    call MPI_Imrecv(b, 8, MPI_INTEGER, message, requests(1), ierr)
    call MPI_Wait(requests(1), status, ierr)
    call check(came(b) .and. message == MPI_MESSAGE_NULL, 'MPI_Improbe, MPI_Imrecv')
    call MPI_Wait(request, status, ierr)
  end subroutine

  ! Anything may be a buffer.
  subroutine kinds_of_buffers
    real(8) :: x, y(2, 3)
    complex(4) :: z
    logical :: l(2)
    type point
      sequence
      integer :: i
      real(4) :: f
    end type
    type(point) :: p
    text = merge('zero    ', 'one     ', rank == 0)
    call exchange_text(text)
    call check(text == merge('one     ', 'zero    ', rank == 0), 'a CHARACTER')
    texts = text
    call MPI_Sendrecv_replace(texts, 24, MPI_CHARACTER, peer, 70, peer, 70, comm, status, ierr)
    call check(all(texts == merge('zero', 'one ', rank == 0)), 'an array of CHARACTER')
    x = rank + 0.5d0
    call MPI_Sendrecv_replace(x, 1, MPI_DOUBLE_PRECISION, peer, 70, peer, 70, comm, status, ierr)
    call check(x == peer + 0.5d0, 'a REAL(8)')
    y = rank
    ! Every other column: the compiler packs it and unpacks it.
    call MPI_Sendrecv_replace(y(:, 1:3:2), 4, MPI_REAL8, peer, 70, peer, 70, comm, status, ierr)
    call check(all(y(:, 1) == peer) .and. all(y(:, 2) == rank) .and. all(y(:, 3) == peer), &
               'a section')
    z = cmplx(rank, -rank)
    call MPI_Sendrecv_replace(z, 1, MPI_COMPLEX, peer, 70, peer, 70, comm, status, ierr)
    call check(z == cmplx(peer, -peer), 'a COMPLEX')
    l = [rank == 0, rank == 1]
    call MPI_Sendrecv_replace(l, 2, MPI_LOGICAL, peer, 70, peer, 70, comm, status, ierr)
    call check((l(1) .eqv. rank == 1) .and. (l(2) .eqv. rank == 0), 'LOGICALs')
    p = point(rank, 2.0 * rank)
    call MPI_Sendrecv_replace(p, 8, MPI_BYTE, peer, 70, peer, 70, comm, status, ierr)
    call check(p%i == peer .and. p%f == 2.0 * peer, 'a SEQUENCE type')
  end subroutine

  subroutine exchange_text(what)
    character(*), intent(inout) :: what
    call MPI_Sendrecv_replace(what, len(what), MPI_CHARACTER, peer, 70, peer, 70, comm, status, &
                              ierr)
  end subroutine

  subroutine buffered
    integer :: size
    call MPI_Buffer_attach(buffer, 4 * 4096, ierr)
    b = 0
    call MPI_Bsend(a, 8, MPI_INTEGER, peer, 80, comm, ierr)
    call MPI_Recv(b, 8, MPI_INTEGER, peer, 80, comm, status, ierr)
    call check(came(b), 'MPI_Bsend')
    call MPI_Ibsend(a, 8, MPI_INTEGER, peer, 7, comm, request, ierr)
    call receive_one('MPI_Ibsend')
    call MPI_Buffer_flush(ierr)
    call check(ierr == 0, 'MPI_Buffer_flush')
    call MPI_Buffer_iflush(request, ierr)
    call MPI_Wait(request, status, ierr)
    call check(ierr == 0, 'MPI_Buffer_iflush')
    call MPI_Bsend_init(a, 8, MPI_INTEGER, peer, 81, comm, request, ierr)
    call MPI_Start(request, ierr)
    call MPI_Wait(request, status, ierr)
    call MPI_Recv(b, 8, MPI_INTEGER, peer, 81, comm, status, ierr)
    call check(came(b), 'MPI_Bsend_init')
    call MPI_Request_free(request, ierr)
    call MPI_Buffer_detach(buffer, size, ierr)
    call check(size == 4 * 4096, 'MPI_Buffer_detach')
    call MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0, ierr)
    call check(ierr == 0, 'MPI_BUFFER_AUTOMATIC')
    call MPI_Buffer_detach(buffer, size, ierr)
    call buffers_of_others
  end subroutine

  subroutine buffers_of_others
    integer :: size, session
    call MPI_Comm_attach_buffer(comm, buffer, 4 * 1024, ierr)
    call MPI_Comm_flush_buffer(comm, ierr)
    call check(ierr == 0, 'MPI_Comm_flush_buffer')
    call MPI_Comm_iflush_buffer(comm, request, ierr)
    call MPI_Wait(request, status, ierr)
    call MPI_Comm_detach_buffer(comm, buffer, size, ierr)
    call check(size == 4 * 1024, 'MPI_Comm_detach_buffer')
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session, ierr)
    call MPI_Session_attach_buffer(session, buffer, 4 * 1024, ierr)
    call MPI_Session_flush_buffer(session, ierr)
    call check(ierr == 0, 'MPI_Session_flush_buffer')
    call MPI_Session_iflush_buffer(session, request, ierr)
    call MPI_Wait(request, status, ierr)
    call MPI_Session_detach_buffer(session, buffer, size, ierr)
    call check(size == 4 * 1024, 'MPI_Session_detach_buffer')
    call MPI_Session_finalize(session, ierr)
  end subroutine

  subroutine partitioned
    integer(MPI_COUNT_KIND), parameter :: two = 2
    b = 0
    call MPI_Psend_init(a, 4, two, MPI_INTEGER, peer, 90, comm, MPI_INFO_NULL, requests(1), ierr)
    call MPI_Precv_init(b, 4, two, MPI_INTEGER, peer, 90, comm, MPI_INFO_NULL, requests(2), ierr)
    call MPI_Startall(2, requests, ierr)
    call MPI_Pready(0, requests(1), ierr)
    call MPI_Pready_range(1, 2, requests(1), ierr)
    call MPI_Pready_list(1, [3], requests(1), ierr)
    flag = .false.
    do while (.not. flag)
      call MPI_Parrived(requests(2), 3, flag, ierr)
    end do
    call MPI_Waitall(2, requests, statuses, ierr)
    call check(came(b), 'partitioned')
    call MPI_Request_free(requests(1), ierr)
    call MPI_Request_free(requests(2), ierr)
  end subroutine

  subroutine generalized
    calls = 0
    state = 7
    call MPI_Grequest_start(query, free, cancel, state, request, ierr)
    call MPI_Test(request, flag, status, ierr)
    call check(.not. flag, 'MPI_Grequest_start')
    call MPI_Cancel(request, ierr)
    call MPI_Grequest_complete(request, ierr)
    call MPI_Wait(request, status, ierr)
    call check(status(MPI_TAG) == 17, 'the status of a generalised request')
    call check(all(calls == [1, 1, 1]), 'the callbacks of a generalised request')
  end subroutine

  ! An error comes back, and what is given back then is a null handle.
  subroutine failing
    integer :: class, length
    character(MPI_MAX_ERROR_STRING) :: string
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierr)
    request = 99999
    call MPI_Isend(a, -1, MPI_INTEGER, peer, 1, comm, request, ierr)
    call MPI_Error_class(ierr, class, ierr)
    call check(class == MPI_ERR_COUNT .and. request == MPI_REQUEST_NULL, 'a wrong count')
    call MPI_Error_string(MPI_ERR_COUNT, string, length, ierr)
    call check(length > 0 .and. length <= MPI_MAX_ERROR_STRING, 'MPI_Error_string')
    call check(string(length + 1:) == ' ' .and. index_of_zero(string) == 0, 'blanks at its end')
  end subroutine

  integer function index_of_zero(string)
    character(*), intent(in) :: string
    index_of_zero = scan(string, achar(0))
  end function
end program

subroutine query(extra_state, status, ierror)
  USE_LINE
  implicit none
  INCLUDE_LINE
  integer(MPI_ADDRESS_KIND) :: extra_state
  integer :: status(MPI_STATUS_SIZE), ierror, calls(3)
  common /callback_counts/ calls
  if (extra_state == 7) calls(1) = calls(1) + 1
  call MPI_Status_set_elements(status, MPI_INTEGER, 0, ierror)
  call MPI_Status_set_cancelled(status, .false., ierror)
  status(MPI_SOURCE) = 0
  status(MPI_TAG) = 17
  ierror = MPI_SUCCESS
end subroutine

subroutine free(extra_state, ierror)
  USE_LINE
  implicit none
  INCLUDE_LINE
  integer(MPI_ADDRESS_KIND) :: extra_state
  integer :: ierror, calls(3)
  common /callback_counts/ calls
  if (extra_state == 7) calls(2) = calls(2) + 1
  ierror = MPI_SUCCESS
end subroutine

subroutine cancel(extra_state, complete, ierror)
  USE_LINE
  implicit none
  INCLUDE_LINE
  integer(MPI_ADDRESS_KIND) :: extra_state
  logical :: complete
  integer :: ierror, calls(3)
  common /callback_counts/ calls
  if (extra_state == 7 .and. .not. complete) calls(3) = calls(3) + 1
  ierror = MPI_SUCCESS
end subroutine

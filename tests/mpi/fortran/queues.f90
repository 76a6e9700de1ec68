! Ferry's additions for GPUs (module ferry_mpix): matched requests and partitions on a queue, between
! two ranks, with arrays in memory of a device.
program queues
  use, intrinsic :: iso_c_binding
  use mpi_f08
  use ferry_mpix
  use checks
  implicit none
  ! Of libferry.
  interface
    integer(c_int) function ferry_alloc(bytes, kind, device, memory) bind(C)
      import
      integer(c_size_t), value :: bytes
      integer(c_int), value :: kind, device
      type(c_ptr) :: memory
    end function
    integer(c_int) function ferry_free(memory) bind(C)
      import
      type(c_ptr), value :: memory
    end function
    integer(c_int) function ferry_memcpy(destination, source, bytes) bind(C)
      import
      type(c_ptr), value :: destination, source
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function ferry_stream_create(device, stream) bind(C)
      import
      integer(c_int), value :: device
      type(c_ptr) :: stream
    end function
    integer(c_int) function ferry_stream_destroy(stream) bind(C)
      import
      type(c_ptr) :: stream
    end function
  end interface
  integer, parameter :: n = 1000, of_device = 2
  integer(c_size_t), parameter :: bytes = 4 * n
  integer(MPIX_QUEUE_KIND) :: queue
  type(c_ptr) :: stream, going, coming
  integer, pointer, asynchronous :: sent(:), received(:)
  integer, target :: here(n)
  type(MPI_Request) :: requests(2), match
  integer :: rank, other, round, ierr, class, old(2), partition, count, partitions(4)
  logical :: flag

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  other = 1 - rank
  call check(ferry_alloc(bytes, of_device, 0, going) == 0, 'memory of a device')
  call check(ferry_alloc(bytes, of_device, 0, coming) == 0, 'memory of a device')
  call check(ferry_stream_create(0, stream) == 0, 'a stream')
  call c_f_pointer(going, sent, [n])
  call c_f_pointer(coming, received, [n])
  call MPIX_Queue_init(queue, MPIX_QUEUE_FERRY, stream)
  call check(queue /= MPIX_QUEUE_NULL, 'a queue')
  call typed
  call untyped
  call one_by_one
  call partitioned
  call MPIX_Queue_free(queue)
  call check(queue == MPIX_QUEUE_NULL, 'a queue that was freed')
  call check(ferry_stream_destroy(stream) == 0, 'the end of a stream')
  call check(ferry_free(going) == 0 .and. ferry_free(coming) == 0, 'the end of the memory')
  call report(rank)
  call MPI_Finalize()

contains

  subroutine fill(number)
    integer, intent(in) :: number
    here = number
    call check(ferry_memcpy(going, c_loc(here), bytes) == 0, 'a copy to the device')
  end subroutine

  subroutine expect(number, what)
    integer, intent(in) :: number
    character(*), intent(in) :: what
    call check(ferry_memcpy(c_loc(here), coming, bytes) == 0, 'a copy from the device')
    call check(all(here == number), what)
  end subroutine

  subroutine typed
    call MPI_Recv_init(received, n, MPI_INTEGER, other, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Send_init(sent, n, MPI_INTEGER, other, 1, MPI_COMM_WORLD, requests(2))
    call MPIX_Is_matched(requests(1), flag)
    call check(.not. flag, 'MPIX_Is_matched before')
    call MPIX_Enqueue_start(queue, requests(1), ierr)
    call MPI_Error_class(ierr, class)
    call check(class == MPI_ERR_REQUEST, 'a request without a match')
    call MPIX_Matchall(2, requests, ierr)
    call check(ierr == MPI_SUCCESS, 'MPIX_Matchall')
    call MPIX_Is_matched(requests(2), flag)
    call check(flag, 'MPIX_Is_matched after')
    do round = 1, 5
      call fill(100 * round + rank)
      call MPIX_Enqueue_startall(queue, 2, requests)
      call MPIX_Enqueue_waitall(queue, 2, requests)
      call MPIX_Queue_wait(queue, ierr)
      call check(ierr == MPI_SUCCESS, 'MPIX_Queue_wait')
      call expect(100 * round + other, 'what a queue has received')
    end do
    call fill(7 + rank)
    call MPIX_Enqueue_start(queue, requests(1))
    call MPIX_Enqueue_start(queue, requests(2))
    call MPIX_Enqueue_wait(queue, requests(1))
    call MPIX_Enqueue_wait(queue, requests(2))
    call MPIX_Queue_wait(queue)
    call expect(7 + other, 'requests one by one')
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine

  ! Requests as `mpi` and mpif.h have them; matched one by one, without blocking.
  subroutine untyped
    integer :: matches(2)
    call MPI_Recv_init(received, n, MPI_INTEGER, other, 2, MPI_COMM_WORLD, requests(1))
    call MPI_Send_init(sent, n, MPI_INTEGER, other, 2, MPI_COMM_WORLD, requests(2))
    old = requests%MPI_VAL
    call MPIX_Imatch(old(1), matches(1))
    call MPIX_Imatchall(1, old(2:2), matches(2), ierr)
    call check(ierr == MPI_SUCCESS, 'MPIX_Imatchall')
    do round = 1, 2
      match%MPI_VAL = matches(round)
      call MPI_Wait(match, MPI_STATUS_IGNORE)
    end do
    call MPIX_Match(old(1), ierr)
    call check(ierr == MPI_SUCCESS, 'MPIX_Match of a matched one')
    call fill(50 + rank)
    call MPIX_Enqueue_startall(queue, 2, old)
    call MPIX_Enqueue_waitall(queue, 2, old)
    call MPIX_Queue_wait(queue)
    call expect(50 + other, 'integers as requests')
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine

  ! The same with their types.
  subroutine one_by_one
    type(MPI_Request) :: matches(2)
    call MPI_Recv_init(received, n, MPI_INTEGER, other, 4, MPI_COMM_WORLD, requests(1))
    call MPI_Send_init(sent, n, MPI_INTEGER, other, 4, MPI_COMM_WORLD, requests(2))
    call MPIX_Imatch(requests(1), matches(1))
    call MPIX_Imatchall(1, requests(2:2), matches(2), ierr)
    call check(ierr == MPI_SUCCESS, 'MPIX_Imatchall')
    call MPI_Waitall(2, matches, MPI_STATUSES_IGNORE)
    call MPIX_Match(requests(2), ierr)
    call check(ierr == MPI_SUCCESS, 'MPIX_Match of a matched one')
    call MPIX_Is_matched(requests(1), flag)
    call check(flag, 'MPIX_Is_matched')
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine

  subroutine partitioned
    integer(MPI_COUNT_KIND), parameter :: each = n / 4
    integer :: seen
    call MPI_Precv_init(received, 4, each, MPI_INTEGER, other, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &
                        requests(1))
    call MPI_Psend_init(sent, 4, each, MPI_INTEGER, other, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &
                        requests(2))
    ! On the queue.
    do round = 1, 2
      call fill(20 + round + rank)
      call MPIX_Enqueue_startall(queue, 2, requests)
      if (round == 1) call MPIX_Enqueue_pbuf_prepare(queue, requests(2))
      if (round == 2) call MPIX_Enqueue_pbuf_prepare_all(queue, 1, requests(2:2))
      call MPIX_Enqueue_pready(queue, 0, 3, requests(2))
      call MPIX_Enqueue_waitall(queue, 2, requests)
      call MPIX_Queue_wait(queue, ierr)
      call check(ierr == MPI_SUCCESS, 'partitions on a queue')
      call expect(20 + round + other, 'partitions that a queue has readied')
    end do
    ! By the rank.
    call fill(30 + rank)
    call MPI_Startall(2, requests)
    call MPIX_Pbuf_prepare_all(2, requests, ierr)
    call check(ierr == MPI_SUCCESS, 'MPIX_Pbuf_prepare_all')
    call MPIX_Pbuf_prepare(requests(2))
    call MPI_Pready_range(0, 3, requests(2))
    seen = 0
    do while (seen < 4)
      call MPIX_Parrived_any(requests(1), partition, flag)
      if (flag) seen = seen + 1
      if (flag) call check(partition >= 0 .and. partition < 4, 'MPIX_Parrived_any')
    end do
    call MPIX_Parrived_some(requests(1), 4, count, partitions)
    call check(count == MPI_UNDEFINED, 'MPIX_Parrived_some')
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call expect(30 + other, 'partitions that the rank has readied')
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine
end program

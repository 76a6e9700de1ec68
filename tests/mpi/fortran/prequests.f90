! Kernels ready partitions by Prequests (module ferry_mpix), and sections of arrays in partitioned
! collectives; on any number of ranks.
program prequests
  use, intrinsic :: iso_c_binding
  use mpi_f08
  use ferry_mpix
  use checks
  implicit none
  interface
    ! Of libferry.
    integer(c_int) function ferry_stream_create(device, stream) bind(C)
      import
      integer(c_int), value :: device
      type(c_ptr) :: stream
    end function
    integer(c_int) function ferry_stream_synchronize(stream) bind(C)
      import
      type(c_ptr), value :: stream
    end function
    integer(c_int) function ferry_stream_destroy(stream) bind(C)
      import
      type(c_ptr) :: stream
    end function
    ! Of kernels.cc.
    integer(c_int) function fill_and_ready(stream, data, partitions, count, number, prequest) bind(C)
      import
      type(c_ptr), value :: stream, data, prequest
      integer(c_int), value :: partitions, count, number
    end function
    integer(c_int) function await_and_expect(stream, data, partitions, count, number, prequest) bind(C)
      import
      type(c_ptr), value :: stream, data, prequest
      integer(c_int), value :: partitions, count, number
    end function
    integer(c_int) function wrong_in_kernels() bind(C)
      import
    end function
  end interface
  integer, parameter :: parts = 4, n = 250, device = 0
  integer(MPI_COUNT_KIND), parameter :: each = n
  type(c_ptr) :: stream
  integer, pointer, asynchronous :: sent(:), received(:)
  type(MPI_Request) :: request, requests(2)
  type(MPI_Info) :: info
  integer :: rank, ranks, next, previous, round, ierr, class

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  next = modulo(rank + 1, ranks)
  previous = modulo(rank - 1, ranks)
  call check(ferry_stream_create(device, stream) == 0, 'a stream')
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'ferry_memory_kind', 'device')
  sent => memory()
  received => memory()
  call messages
  call collective
  call mistakes
  call sections
  call refused
  call check(wrong_in_kernels() == 0, 'what kernels have seen')
  call MPI_Free_mem(sent)
  call MPI_Free_mem(received)
  call MPI_Info_free(info)
  call check(ferry_stream_destroy(stream) == 0, 'the end of a stream')
  call report(rank)
  call MPI_Finalize()

contains

  ! Memory of the device.
  function memory() result(numbers)
    integer, pointer :: numbers(:)
    type(c_ptr) :: address
    integer(MPI_ADDRESS_KIND), parameter :: bytes = 4 * parts * n
    call MPI_Alloc_mem(bytes, info, address, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_Alloc_mem')
    call c_f_pointer(address, numbers, [parts * n])
  end function

  ! A kernel readies what it has made, another one uses what has come.
  subroutine messages
    type(c_ptr) :: from_here, to_here, again
    call MPI_Psend_init(sent, parts, each, MPI_INTEGER, next, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &
                        requests(1))
    call MPI_Precv_init(received, parts, each, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, &
                        MPI_INFO_NULL, requests(2))
    call MPIX_Prequest_create(requests(1), device, MPI_INFO_NULL, from_here, ierr)
    call check(ierr == MPI_SUCCESS .and. c_associated(from_here), 'MPIX_Prequest_create of a send')
    call MPIX_Prequest_create(requests(2)%MPI_VAL, device, MPI_INFO_NULL%MPI_VAL, to_here, ierr)
    call check(ierr == MPI_SUCCESS .and. c_associated(to_here), 'of a receive, by integers')
    call MPIX_Prequest_get(requests(1), again)
    call check(c_associated(again, from_here), 'MPIX_Prequest_get of one that was made')
    do round = 1, 3
      call MPI_Startall(2, requests)
      call MPIX_Pbuf_prepare(requests(1))
      call check(fill_and_ready(stream, c_loc(sent), parts, n, 100 * round + rank, from_here) == 0, &
                 'a kernel that readies')
      call check(await_and_expect(stream, c_loc(received), parts, n, 100 * round + previous, &
                                  to_here) == 0, 'a kernel that waits')
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
      call check(ierr == MPI_SUCCESS, 'partitions that a kernel has readied')
      call check(ferry_stream_synchronize(stream) == 0, 'the end of kernels')
      call check(all(received == 100 * round + previous), 'what a kernel has sent')
    end do
    call MPIX_Prequest_free(from_here, ierr)
    call check(ierr == MPI_SUCCESS .and. .not. c_associated(from_here), 'MPIX_Prequest_free')
    call MPIX_Prequest_free(to_here)
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine

  ! The request's own Prequest, which is freed with it.
  subroutine collective
    type(c_ptr) :: prequest, again
    call MPIX_Pallreduce_init(sent, received, parts, each, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, &
                              MPI_INFO_NULL, request, ierr)
    call check(ierr == MPI_SUCCESS, 'MPIX_Pallreduce_init on a device')
    do round = 1, 2
      call MPI_Start(request)
      call MPIX_Prequest_get(request, prequest, ierr)
      call check(ierr == MPI_SUCCESS .and. c_associated(prequest), 'MPIX_Prequest_get')
      call MPIX_Prequest_get(request%MPI_VAL, again)
      call check(c_associated(prequest, again), 'MPIX_Prequest_get, by integers')
      call check(fill_and_ready(stream, c_loc(sent), parts, n, round + rank, prequest) == 0, &
                 'a kernel that contributes')
      call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
      call check(ierr == MPI_SUCCESS, 'a collective that a kernel has readied')
      call check(ferry_stream_synchronize(stream) == 0, 'the end of a kernel')
      call check(all(received == ranks * round + ranks * (ranks - 1) / 2), 'the sum')
    end do
    call MPI_Request_free(request)
  end subroutine

  subroutine mistakes
    type(c_ptr) :: prequest
    call MPI_Send_init(sent, n, MPI_INTEGER, next, 2, MPI_COMM_WORLD, request)
    prequest = c_loc(sent)
    call MPIX_Prequest_create(request, device, MPI_INFO_NULL, prequest, ierr)
    call MPI_Error_class(ierr, class)
    call check(class == MPI_ERR_REQUEST, 'a Prequest of a request without partitions')
    call check(.not. c_associated(prequest), 'MPIX_PREQUEST_NULL')
    call MPI_Request_free(request)
    call MPIX_Pbcast_init(sent, 0, each, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call MPI_Error_class(ierr, class)
    call check(class == MPI_ERR_ARG .and. request == MPI_REQUEST_NULL, 'no partition')
    call MPIX_Pschedule_init(MPI_IN_PLACE, sent, parts, each, MPI_INTEGER, 1, 1, [-1], [rank], [0], &
                             [MPI_OP_NULL], [0], [rank], [0], MPI_COMM_WORLD, MPI_INFO_NULL, &
                             request, ierr)
    call MPI_Error_class(ierr, class)
    call check(class == MPI_ERR_ARG, 'a step with fewer sources than none')
  end subroutine

  ! Every second row of a column: with a datatype of its own for each buffer.
  subroutine sections
    integer, parameter :: here = 2 * parts
    integer, asynchronous :: table(2 * here, 3), all_of_them(here * ranks)
    integer(MPI_COUNT_KIND) :: counts(ranks)
    integer(MPI_ADDRESS_KIND) :: places(ranks)
    integer :: i
    logical :: flag
    table = -1
    if (rank == 0) table(::2, 2) = [(7 * i, i = 1, here)]
    call MPIX_Pbcast_init(table(::2, 2), parts, 2_MPI_COUNT_KIND, MPI_INTEGER, 0, MPI_COMM_WORLD, &
                          MPI_INFO_NULL, request, ierr)
    call check(ierr == MPI_SUCCESS, 'a section in MPIX_Pbcast_init')
    call MPI_Start(request)
    if (rank == 0) call MPI_Pready_range(0, parts - 1, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Request_free(request)
    call check(all(table(::2, 2) == [(7 * i, i = 1, here)]), 'a section that is broadcast')
    call check(all(table(2::2, 2) == -1) .and. all(table(:, 1) == -1) .and. all(table(:, 3) == -1), &
               'what is beside a section')
    counts = 2
    places = [(here * i, i = 0, ranks - 1)]
    table(2::2, 3) = rank
    all_of_them = -1
    call MPIX_Pgatherv_init(table(2::2, 3), parts, 2_MPI_COUNT_KIND, MPI_INTEGER, all_of_them, &
                            counts, places, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    call MPI_Start(request)
    call MPI_Pready_range(0, parts - 1, request)
    if (rank == 0) then
      do i = 0, parts - 1
        flag = .false.
        do while (.not. flag)
          call MPI_Parrived(request, i, flag)
        end do
      end do
    end if
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Request_free(request)
    call check(rank /= 0 .or. all(all_of_them == [(i / here, i = 0, here * ranks - 1)]), &
               'a section that is gathered')
  end subroutine

  ! One datatype cannot describe two buffers, nor be reduced with gaps.
  subroutine refused
    integer, asynchronous :: table(2 * parts, 2), whole(ranks * parts)
    request = MPI_REQUEST_NULL
    request%MPI_VAL = -1
    call MPIX_Pallreduce_init(table(::2, 1), whole, parts, 1_MPI_COUNT_KIND, MPI_INTEGER, MPI_SUM, &
                              MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call MPI_Error_class(ierr, class)
    call check(class == MPI_ERR_BUFFER .and. request == MPI_REQUEST_NULL, 'a section in a reduction')
    call MPIX_Pallgather_init(table(::2, 1), whole, parts, 1_MPI_COUNT_KIND, MPI_INTEGER, &
                              MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call MPI_Error_class(ierr, class)
    call check(class == MPI_ERR_BUFFER, 'a section beside a buffer of the same datatype')
  end subroutine
end program

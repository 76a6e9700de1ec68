C     Fixed form: a number goes round all ranks. With an argument, rank 0
C     ends the job instead.
      PROGRAM RING
      IMPLICIT NONE
      INCLUDE 'mpif.h'
      INTEGER IERR, RANK, SIZE, TOKEN, STATUS(MPI_STATUS_SIZE)
      INTEGER SUM
      DOUBLE PRECISION START
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, RANK, IERR)
      CALL MPI_COMM_SIZE(MPI_COMM_WORLD, SIZE, IERR)
      IF (COMMAND_ARGUMENT_COUNT() .GT. 0) THEN
        IF (RANK .EQ. 0) CALL MPI_ABORT(MPI_COMM_WORLD, 7, IERR)
        CALL MPI_BARRIER(MPI_COMM_WORLD, IERR)
      END IF
      START = MPI_WTIME()
      TOKEN = 1
      IF (RANK .EQ. 0) THEN
        CALL MPI_SEND(TOKEN, 1, MPI_INTEGER, MOD(1, SIZE), 9,
     &                MPI_COMM_WORLD, IERR)
        CALL MPI_RECV(TOKEN, 1, MPI_INTEGER, SIZE - 1, 9,
     &                MPI_COMM_WORLD, STATUS, IERR)
      ELSE
        CALL MPI_RECV(TOKEN, 1, MPI_INTEGER, RANK - 1, 9,
     &                MPI_COMM_WORLD, MPI_STATUS_IGNORE, IERR)
        TOKEN = TOKEN + 1
        CALL MPI_SEND(TOKEN, 1, MPI_INTEGER, MOD(RANK + 1, SIZE), 9,
     &                MPI_COMM_WORLD, IERR)
      END IF
      CALL MPI_ALLREDUCE(TOKEN, SUM, 1, MPI_INTEGER, MPI_MAX,
     &                   MPI_COMM_WORLD, IERR)
      IF (SUM .EQ. SIZE .AND. MPI_WTIME() .GE. START)
     &  PRINT '(A,I0,A)', 'rank ', RANK, ': ok'
      CALL MPI_FINALIZE(IERR)
      END

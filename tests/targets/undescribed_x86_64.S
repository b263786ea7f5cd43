/* Functions without call frame information, in the styles that libraries are written in; the last ones
 * have some, of kinds that no compiler makes. Each works for a while, calls a function of C, and works
 * on. Registers that calls keep hold anything meanwhile, rbp too. */

	.macro	begin name
	.text
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.endm

	.macro	end name
	.size	\name, . - \name
	.endm

	/* A loop that counts in a register. */
	.macro	work counter
	mov	$2000, %\counter
1:	imul	%rax, %rax
	add	$3, %rax
	dec	%\counter
	jne	1b
	.endm

	/* Registers are pushed and popped. */
	begin	by_pushes
	push	%rbp
	push	%rbx
	push	%r12
	push	%r13
	sub	$24, %rsp
	mov	$-1, %rbp
	mov	$7, %r12
	work	rbx
	call	spend@PLT
	work	r13
	add	$24, %rsp
	pop	%r13
	pop	%r12
	pop	%rbx
	pop	%rbp
	ret
	end	by_pushes

	/* As OpenBLAS does it: room on the stack, registers are moved there and back. */
	begin	by_moves
	sub	$88, %rsp
	mov	%rbx, (%rsp)
	mov	%rbp, 8(%rsp)
	mov	%r14, 16(%rsp)
	mov	%r15, 24(%rsp)
	mov	$-1, %rbp
	mov	$6, %r14
	work	r15
	call	spend@PLT
	work	rbx
	mov	(%rsp), %rbx
	mov	8(%rsp), %rbp
	mov	16(%rsp), %r14
	mov	24(%rsp), %r15
	add	$88, %rsp
	ret
	end	by_moves

	/* A large buffer, aligned; where the stack was is in rbx. */
	begin	with_buffer
	push	%rbx
	push	%rbp
	mov	%rsp, %rbx
	sub	$4128, %rsp
	and	$-4096, %rsp
	mov	$-1, %rbp
	mov	%rbp, (%rsp)
	work	rcx
	call	spend@PLT
	work	rbp
	mov	%rbx, %rsp
	pop	%rbp
	pop	%rbx
	ret
	end	with_buffer

	/* The same, with that in memory; registers are taken back from there. */
	begin	with_kept_pointer
	mov	%rsp, %rax
	push	%rbp
	push	%r15
	sub	$128, %rsp
	and	$-64, %rsp
	mov	%rax, 32(%rsp)
	mov	$-1, %rbp
	work	r15
	call	spend@PLT
	work	r15
	mov	32(%rsp), %rsi
	mov	-16(%rsi), %r15
	mov	-8(%rsi), %rbp
	lea	(%rsi), %rsp
	ret
	end	with_kept_pointer

	/* A frame pointer, and a stack that is aligned again. */
	begin	with_frame
	push	%rbp
	mov	%rsp, %rbp
	push	%r12
	push	%r13
	sub	$40, %rsp
	and	$-32, %rsp
	work	r12
	call	spend@PLT
	work	r13
	lea	-16(%rbp), %rsp
	pop	%r13
	pop	%r12
	pop	%rbp
	ret
	end	with_frame

	/* The loop is left at its head, and behind it is no code. */
	begin	by_a_jump
	push	%rbx
	push	%rbp
	sub	$8, %rsp
	mov	$-1, %rbp
	call	spend@PLT
	mov	$4000, %rbx
2:	test	%rbx, %rbx
	je	3f
	imul	%rax, %rax
	add	$3, %rax
	dec	%rbx
	jmp	2b
	.skip	64, 0x06
3:	add	$8, %rsp
	pop	%rbp
	pop	%rbx
	ret
	end	by_a_jump

	/* An internal function, which uses registers and the stack as it likes. */
	begin	with_inner
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	call	inner
	call	inner
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret
	end	with_inner

	.type	inner, @function
inner:
	mov	$-1, %rbp
	mov	$8, %r12
	work	rbx
	work	r13
	ret
	end	inner

	/* Where the stack was is kept before the stack pointer, in the red zone, as OpenSSL's SHA-512 does
	 * it: CFA = *(rsp - 8) + 8, later *(rsp + 8) + 8. */
	begin	before_the_pointer
	.cfi_startproc
	mov	%rsp, %rax
	.cfi_def_cfa_register %rax
	push	%rbp
	.cfi_offset %rbp, -16
	push	%rbx
	.cfi_offset %rbx, -24
	sub	$256, %rsp
	and	$-128, %rsp
	mov	%rax, -8(%rsp)
	.cfi_escape 0x0f, 5, 0x77, 0x78, 0x06, 0x23, 8
	mov	$-1, %rbp
	work	rbx
	lea	-16(%rsp), %rsp
	.cfi_escape 0x0f, 5, 0x77, 8, 0x06, 0x23, 8
	call	spend@PLT
	work	rbx
	mov	8(%rsp), %rsi
	.cfi_def_cfa %rsi, 8
	mov	-16(%rsi), %rbx
	.cfi_restore %rbx
	mov	-8(%rsi), %rbp
	.cfi_restore %rbp
	lea	(%rsi), %rsp
	.cfi_def_cfa_register %rsp
	ret
	.cfi_endproc
	end	before_the_pointer

	/* The same, in an array: CFA = *(rsp + 8 + r9 * 8) + 8, as in OpenSSL's bn_mul_mont. */
	begin	by_an_index
	.cfi_startproc
	mov	%rsp, %rax
	.cfi_def_cfa_register %rax
	push	%rbp
	.cfi_offset %rbp, -16
	push	%rbx
	.cfi_offset %rbx, -24
	sub	$64, %rsp
	and	$-64, %rsp
	mov	$3, %r9
	mov	%rax, 8(%rsp, %r9, 8)
	.cfi_escape 0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8
	mov	$-1, %rbp
	work	rbx
	.cfi_escape 0x0f, 5, 0x77, 32, 0x06, 0x23, 8
	call	spend@PLT
	work	rbx
	mov	32(%rsp), %rsi
	.cfi_def_cfa %rsi, 8
	mov	-16(%rsi), %rbx
	.cfi_restore %rbx
	mov	-8(%rsi), %rbp
	.cfi_restore %rbp
	lea	(%rsi), %rsp
	.cfi_def_cfa_register %rsp
	ret
	.cfi_endproc
	end	by_an_index

	/* Where the stack was is in rax, which the function that is called leaves alone: as in OpenSSL's
	 * AES-GCM. */
	begin	with_agreement
	.cfi_startproc
	mov	%rsp, %rax
	.cfi_def_cfa_register %rax
	push	%rbp
	.cfi_offset %rbp, -16
	push	%rbx
	.cfi_offset %rbx, -24
	sub	$64, %rsp
	and	$-64, %rsp
	mov	$-1, %rbp
	call	party
	call	party
	mov	-16(%rax), %rbx
	.cfi_restore %rbx
	mov	-8(%rax), %rbp
	.cfi_restore %rbp
	lea	(%rax), %rsp
	.cfi_def_cfa_register %rsp
	ret
	.cfi_endproc
	end	with_agreement

	.type	party, @function
party:
	.cfi_startproc
	mov	$4000, %rbx
4:	imul	%rcx, %rcx
	add	$3, %rcx
	dec	%rbx
	jne	4b
	ret
	.cfi_endproc
	end	party

	.section .note.GNU-stack, "", @progbits

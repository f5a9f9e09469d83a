// SPDX-License-Identifier: GPL-2.0
/*
 * rds.c - sockets of AF_RDS between two addresses of this kernel
 *
 *	rds send FROM TO MESSAGES	messages in both directions, bytes compared
 *	rds rdma FROM TO		RDMA WRITE and READ of memory of TO's socket
 *
 * The transport is that of RDMA devices: asked for, and looked up afterwards.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <linux/rds.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define PATIENCE_MS 60000
#define MAX_LEN 150000u
#define RDMA_LEN 100001u

static struct sockaddr_in addr_of(const char *s, uint16_t port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(port),
	};

	if (inet_pton(AF_INET, s, &a.sin_addr) != 1)
		errx(2, "%s is no IPv4 address", s);
	return a;
}

static int open_at(const struct sockaddr_in *a)
{
	int fd = socket(AF_RDS, SOCK_SEQPACKET, 0), size = 1 << 20;
	int transport = RDS_TRANS_IB;
	socklen_t len = sizeof(transport);

	if (fd < 0)
		err(1, "socket");
	if (setsockopt(fd, SOL_RDS, SO_RDS_TRANSPORT, &transport, len))
		err(1, "SO_RDS_TRANSPORT");
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (bind(fd, (const void *)a, sizeof(*a)))
		err(1, "bind");
	transport = -1;
	if (getsockopt(fd, SOL_RDS, SO_RDS_TRANSPORT, &transport, &len))
		err(1, "SO_RDS_TRANSPORT");
	if (transport != RDS_TRANS_IB)
		errx(1, "transport %d", transport);
	return fd;
}

/* Each connection that this kernel has is one of RDMA, and there is one. */
static void check_transport(int fd)
{
	static struct rds_info_connection c[64];
	socklen_t len = sizeof(c);
	int each;

	each = getsockopt(fd, SOL_RDS, RDS_INFO_CONNECTIONS, c, &len);
	if (each != sizeof(c[0]))
		err(1, "RDS_INFO_CONNECTIONS: %d", each);
	if (len < sizeof(c[0]))
		errx(1, "no connection");
	for (unsigned int i = 0; i < len / sizeof(c[0]); i++)
		if (strcmp((char *)c[i].transport, "infiniband"))
			errx(1, "a connection of %s", c[i].transport);
}

static void wait_for(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	if (poll(&p, 1, PATIENCE_MS) != 1)
		errx(1, "nothing comes");
}

static uint8_t byte_at(unsigned int i, unsigned int seed)
{
	return (i * 131 + (i >> 8) * 7 + seed * 29) & 0xff;
}

/* From one byte to the longest, in no order; whole fragments and one more */
static unsigned int length(unsigned int n)
{
	static const unsigned int edges[] = { 1, 4095, 4096, 4097, MAX_LEN };

	if (n % 8 < 5)
		return edges[n % 8];
	return 1 + n * 7919 % MAX_LEN;
}

struct end {
	int fd;
	struct sockaddr_in to;
	unsigned int sent, got, seed;
};

static void send_one(struct end *e)
{
	static uint8_t buf[MAX_LEN];
	unsigned int len = length(e->sent);

	for (unsigned int i = 0; i < len; i++)
		buf[i] = byte_at(i, e->sent + e->seed);
	if (sendto(e->fd, buf, len, MSG_DONTWAIT, (void *)&e->to,
		   sizeof(e->to)) == len)
		e->sent++;
	else if (errno != EAGAIN && errno != ENOBUFS)
		err(1, "message %u", e->sent);
}

static void receive_one(struct end *e, unsigned int seed)
{
	static uint8_t buf[MAX_LEN + 1];
	ssize_t n = recv(e->fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n != length(e->got))
		errx(1, "message %u has %zd bytes, not %u", e->got, n,
		     length(e->got));
	for (unsigned int i = 0; i < n; i++)
		if (buf[i] != byte_at(i, e->got + seed))
			errx(1, "message %u: byte %u is wrong", e->got, i);
	e->got++;
}

static int messages(const char *from, const char *to, unsigned int n)
{
	struct sockaddr_in a = addr_of(from, 4000), b = addr_of(to, 4001);
	struct end ends[2] = {
		{ .fd = open_at(&a), .to = b, .seed = 1 },
		{ .fd = open_at(&b), .to = a, .seed = 2 },
	};
	bool done = false;

	while (!done) {
		struct pollfd p[2];

		done = true;
		for (int i = 0; i < 2; i++) {
			p[i] = (struct pollfd){
				.fd = ends[i].fd, .events = POLLIN,
			};
			if (ends[i].sent < n)
				p[i].events |= POLLOUT;
			if (ends[i].sent < n || ends[i].got < n)
				done = false;
		}
		if (done)
			break;
		if (poll(p, 2, PATIENCE_MS) < 1)
			errx(1, "nothing goes on: %u and %u sent, %u and %u received",
			     ends[0].sent, ends[1].sent, ends[0].got, ends[1].got);
		for (int i = 0; i < 2; i++) {
			if (p[i].revents & POLLIN)
				receive_one(&ends[i], ends[1 - i].seed);
			if (p[i].revents & POLLOUT && ends[i].sent < n)
				send_one(&ends[i]);
		}
	}
	check_transport(ends[0].fd);
	return 0;
}

/* A WRITE or a READ between @local and what @cookie names; waits for its end. */
static void rdma(int fd, const struct sockaddr_in *to, uint64_t cookie,
		 void *local, uint64_t flags)
{
	struct rds_iovec vec = { .addr = (uintptr_t)local, .bytes = RDMA_LEN };
	struct rds_rdma_args args = {
		.cookie = cookie,
		.remote_vec = { .bytes = RDMA_LEN },
		.local_vec_addr = (uintptr_t)&vec,
		.nr_local = 1,
		.flags = flags | RDS_RDMA_NOTIFY_ME | RDS_RDMA_FENCE,
		.user_token = 4711,
	};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(args))];
	} c = {};
	struct msghdr m = {
		.msg_name = (void *)to, .msg_namelen = sizeof(*to),
		.msg_control = &c, .msg_controllen = sizeof(c),
	};
	struct rds_rdma_notify *notify;

	c.head.cmsg_len = CMSG_LEN(sizeof(args));
	c.head.cmsg_level = SOL_RDS;
	c.head.cmsg_type = RDS_CMSG_RDMA_ARGS;
	memcpy(CMSG_DATA(&c.head), &args, sizeof(args));
	if (sendmsg(fd, &m, 0) < 0)
		err(1, "RDMA");
	do {
		memset(&c, 0, sizeof(c));
		m.msg_controllen = sizeof(c);
		wait_for(fd, POLLIN | POLLPRI);
		if (recvmsg(fd, &m, MSG_DONTWAIT) < 0 && errno != EAGAIN)
			err(1, "notice");
	} while (c.head.cmsg_type != RDS_CMSG_RDMA_STATUS);
	notify = (void *)CMSG_DATA(&c.head);
	if (notify->user_token != 4711 || notify->status != RDS_RDMA_SUCCESS)
		errx(1, "status %d", notify->status);
}

/* Sends a message that registers @vec for its receiver, and gives up the key. */
static uint64_t map(int from, int to, const struct sockaddr_in *dest,
		    struct rds_iovec vec)
{
	uint64_t cookie = 0;
	struct rds_get_mr_args args = {
		.vec = vec,
		.cookie_addr = (uintptr_t)&cookie,
		.flags = RDS_RDMA_READWRITE,
	};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(args))];
	} c = {};
	char byte = 'x';
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = {
		.msg_name = (void *)dest, .msg_namelen = sizeof(*dest),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &c, .msg_controllen = sizeof(c),
	};
	uint64_t got;

	c.head.cmsg_len = CMSG_LEN(sizeof(args));
	c.head.cmsg_level = SOL_RDS;
	c.head.cmsg_type = RDS_CMSG_RDMA_MAP;
	memcpy(CMSG_DATA(&c.head), &args, sizeof(args));
	if (sendmsg(from, &m, 0) != 1)
		err(1, "RDS_CMSG_RDMA_MAP");

	wait_for(to, POLLIN);
	memset(&c, 0, sizeof(c));
	m.msg_name = NULL;
	m.msg_namelen = 0;
	m.msg_controllen = sizeof(c);
	if (recvmsg(to, &m, 0) != 1)
		err(1, "receive");
	if (c.head.cmsg_type != RDS_CMSG_RDMA_DEST)
		errx(1, "the message brings no key");
	memcpy(&got, CMSG_DATA(&c.head), sizeof(got));
	if (got != cookie)
		errx(1, "key %llx became %llx", (unsigned long long)cookie,
		     (unsigned long long)got);
	return cookie;
}

static int memory(const char *from, const char *to)
{
	struct sockaddr_in a = addr_of(from, 4010), b = addr_of(to, 4011);
	int fa = open_at(&a), fb = open_at(&b);
	uint8_t *remote = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *local = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rds_free_mr_args put = { .flags = RDS_RDMA_INVALIDATE };
	struct rds_iovec vec = {
		.addr = (uintptr_t)remote + 1000, .bytes = RDMA_LEN,
	};
	unsigned int i, round;
	char c;

	/* memory is registered with a connection: there must be one */
	if (sendto(fb, "x", 1, 0, (void *)&a, sizeof(a)) != 1)
		err(1, "send");
	wait_for(fa, POLLIN);
	if (recv(fa, &c, 1, 0) != 1)
		err(1, "receive");

	for (round = 0; round < 4; round++) {
		uint64_t cookie = map(fb, fa, &a, vec);

		for (i = 0; i < RDMA_LEN; i++)
			local[i + 7] = byte_at(i, round);
		rdma(fa, &b, cookie, local + 7, RDS_RDMA_READWRITE);
		for (i = 0; i < RDMA_LEN; i++)
			if (remote[1000 + i] != byte_at(i, round))
				errx(1, "byte %u of the WRITE is wrong", i);
		if (remote[999] || remote[1000 + RDMA_LEN])
			errx(1, "the WRITE left its bounds");
		for (i = 0; i < RDMA_LEN; i++)
			remote[1000 + i] = byte_at(i, round + 100);
		rdma(fa, &b, cookie, local + 7, 0);
		for (i = 0; i < RDMA_LEN; i++)
			if (local[i + 7] != byte_at(i, round + 100))
				errx(1, "byte %u of the READ is wrong", i);
		put.cookie = cookie;
		if (setsockopt(fb, SOL_RDS, RDS_FREE_MR, &put, sizeof(put)))
			err(1, "RDS_FREE_MR");
	}
	check_transport(fa);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "send"))
		return messages(argv[2], argv[3], atoi(argv[4]));
	if (argc == 4 && !strcmp(argv[1], "rdma"))
		return memory(argv[2], argv[3]);
	errx(2, "rds send FROM TO MESSAGES | rds rdma FROM TO");
}

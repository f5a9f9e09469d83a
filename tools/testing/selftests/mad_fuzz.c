// SPDX-License-Identifier: GPL-2.0
/*
 * mad_fuzz.c - a process that does anything to /dev/infiniband/umadN
 *
 *	mad_fuzz		cases; afterwards the port still answers
 *	mad_fuzz until_gone	goes on, opening again and again, until it is killed
 *
 * Environment: MRSOFT_DEV; MAD_GID, MAD_INDEX: an IPv6 GID of its own.  A seed is in
 * the notes.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <time.h>

#include "umad.h"

#define FILES 4
#define SOME_DATA 4096

static unsigned int seed;
static int fds[FILES] = { -1, -1, -1, -1 };

static uint32_t rnd(void)
{
	return (uint32_t)rand_r(&seed) ^ (uint32_t)rand_r(&seed) << 16;
}

static uint8_t some_class(void)
{
	static const uint8_t classes[] = {
		0x01, 0x03, 0x04, 0x05, 0x06, 0x07, 0x09, 0x0f, 0x10, 0x21,
		0x2f, 0x30, 0x4f, 0x50, 0x81, 0x00, 0xff,
	};

	return rnd() % 2 ? MAD_PERF : classes[rnd() % ARRAY_SIZE(classes)];
}

static union ibv_gid some_gid(void)
{
	union ibv_gid gid;
	unsigned int i;

	inet_pton(AF_INET6, getenv("MAD_GID"), &gid);
	switch (rnd() % 12) {
	case 0:		/* a group */
		inet_pton(AF_INET6, "::ffff:239.1.2.3", &gid);
		break;
	case 1:
		inet_pton(AF_INET6, "ff0e::1234", &gid);
		break;
	case 2:
		inet_pton(AF_INET6, "fe80::1", &gid);
		break;
	case 3:
		for (i = 0; i < 16; i++)
			gid.raw[i] = (uint8_t)rnd();
	}
	return gid;
}

static void fuzz_open(int i)
{
	if (fds[i] >= 0)
		close(fds[i]);
	fds[i] = umad_open(getenv("MRSOFT_DEV"));
}

static void fuzz_register(int fd)
{
	struct ib_user_mad_reg_req req = {
		.qpn = rnd() % 16 ? 1 : rnd(), .mgmt_class = some_class(),
		.mgmt_class_version = rnd() % 8 ? 1 : rnd(),
		.oui = { rnd(), rnd(), rnd() },
		.rmpp_version = rnd() % 3 ? 0 : rnd() % 4,
	};
	struct ib_user_mad_reg_req2 req2 = {
		.qpn = req.qpn, .mgmt_class = req.mgmt_class,
		.mgmt_class_version = req.mgmt_class_version,
		.flags = rnd() % 4, .oui = rnd(), .rmpp_version = rnd() % 3,
	};

	if (rnd() % 2)
		req.method_mask[rnd() % 2] = 1ul << rnd() % 64;
	if (rnd() % 2)
		req2.method_mask[rnd() % 2] = 1ull << rnd() % 64;
	if (rnd() % 2)
		ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &req);
	else
		ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &req2);
}

static void fuzz_unregister(int fd)
{
	uint32_t id = rnd() % 8 ? rnd() % 6 : rnd();

	ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &id);
}

/* A question of our class, or an answer, and some of its bits are wrong. */
static void some_mad(uint8_t *mad)
{
	static const uint16_t attrs[] = { 0x01, 0x10, 0x11, 0x12, 0x1d, 0x15 };
	static const uint8_t methods[] = { 1, 2, 3, 5, 6, 7, 0x12, 0x81, 0x86 };
	unsigned int i, n;

	mad[0] = 1;
	mad[MAD_CLASS] = some_class();
	mad[MAD_CLASS_VERSION] = mad[MAD_CLASS] == 3 ? 2 : 1;
	mad[MAD_METHOD] = methods[rnd() % ARRAY_SIZE(methods)];
	be_put(mad + MAD_TID, 8, rnd());
	be_put(mad + MAD_ATTR, 2, attrs[rnd() % ARRAY_SIZE(attrs)]);
	mad[MAD_DATA + 1] = rnd() % 2 ? 1 : rnd();
	be_put(mad + MAD_DATA + 2, 2, rnd());
	/* RMPP: version, type, flags, status, segment, length */
	if (rnd() % 2) {
		mad[24] = rnd() % 8 ? 1 : rnd();
		mad[25] = rnd() % 6;
		mad[26] = rnd();
		mad[27] = rnd() % 4 ? 0 : rnd();
		be_put(mad + 28, 4, rnd() % 4 ? rnd() % 4 : rnd());
		be_put(mad + 32, 4, rnd() % 4 ? rnd() % 1000 : rnd());
	}
	n = rnd() % 3 ? 0 : rnd() % 8;
	for (i = 0; i < n; i++)
		mad[rnd() % MAD_BYTES] ^= 1u << rnd() % 8;
}

static void fuzz_send(int fd)
{
	static struct {
		struct umad_packet p;
		uint8_t more[SOME_DATA];
	} u;
	union ibv_gid gid = some_gid();
	size_t len = sizeof(u.p);

	umad_address(&u.p, rnd() % 8 ? rnd() % 6 : rnd(), &gid,
		     rnd() % 8 ? atoi(getenv("MAD_INDEX")) : (int)rnd());
	u.p.hdr.timeout_ms = rnd() % 4 ? rnd() % 20 : rnd() % 100000;
	u.p.hdr.retries = rnd() % 4 ? rnd() % 3 : rnd();
	u.p.hdr.pkey_index = rnd() % 16 ? 0 : rnd();
	if (!(rnd() % 16))
		u.p.hdr.grh_present = 0;
	if (!(rnd() % 8))
		u.p.hdr.qkey = rnd();
	if (!(rnd() % 8))
		u.p.hdr.qpn = htonl(rnd() & 0xffffff);
	some_mad(u.p.mad);
	if (!(rnd() % 4))
		len = rnd() % sizeof(u);
	if (write(fd, &u, len) < 0 && errno == EFAULT)
		abort();
}

static void fuzz_read(int fd)
{
	static uint8_t buf[8192];

	/* too short for what is there: it stays */
	if (read(fd, buf, rnd() % 4 ? sizeof(buf) : rnd() % 400) < 0)
		return;
}

static void step(void)
{
	int i = rnd() % FILES;

	switch (rnd() % 32) {
	case 0:
		/* with what is outstanding */
		fuzz_open(i);
		break;
	case 1 ... 3:
		fuzz_register(fds[i]);
		break;
	case 4:
		fuzz_unregister(fds[i]);
		break;
	case 5 ... 20:
		fuzz_send(fds[i]);
		break;
	default:
		fuzz_read(fds[i]);
	}
}

/* The performance class, whatever became of the others. */
static void still_answers(void)
{
	union ibv_gid gid;
	struct pollfd poll_fd = { .events = POLLIN };
	struct umad_packet p, answer;
	int agent;

	inet_pton(AF_INET6, getenv("MAD_GID"), &gid);
	poll_fd.fd = umad_open(getenv("MRSOFT_DEV"));
	CHECK(poll_fd.fd >= 0);
	agent = umad_agent(poll_fd.fd, MAD_PERF, 1);
	CHECK(agent >= 0);
	umad_address(&p, agent, &gid, atoi(getenv("MAD_INDEX")));
	p.hdr.timeout_ms = 500;
	p.hdr.retries = 20;
	p.mad[0] = 1;
	p.mad[MAD_CLASS] = MAD_PERF;
	p.mad[MAD_CLASS_VERSION] = 1;
	p.mad[MAD_METHOD] = MAD_GET;
	be_put(p.mad + MAD_ATTR, 2, 1);
	CHECK_EQ(write(poll_fd.fd, &p, sizeof(p)), sizeof(p));
	CHECK_EQ(poll(&poll_fd, 1, 60000), 1);
	CHECK(read(poll_fd.fd, &answer, sizeof(answer)) > 0);
	CHECK_EQ(answer.hdr.status, 0);
	CHECK_EQ(answer.mad[MAD_METHOD], MAD_GET_RESP);
	CHECK_EQ(be_get(answer.mad + MAD_STATUS, 2), 0);
	close(poll_fd.fd);
}

static void fuzz(const void *arg)
{
	unsigned int i, n = t_rounds(4000);

	(void)arg;
	seed = (unsigned int)time(NULL) ^ (unsigned int)getpid();
	t_note("seed %u", seed);
	for (i = 0; i < FILES; i++)
		fuzz_open(i);
	for (i = 0; i < n; i++)
		step();
	still_answers();
	for (i = 0; i < FILES; i++)
		close(fds[i]);
	still_answers();
}

static void until_gone(void)
{
	unsigned int i;

	seed = (unsigned int)time(NULL) ^ (unsigned int)getpid();
	for (;;) {
		for (i = 0; i < FILES; i++)
			fuzz_open(i);
		for (i = 0; i < 300; i++)
			step();
	}
}

static const struct t_case cases[] = {
	{ "fuzz", fuzz, NULL, 100 },
	{ "fuzz_again", fuzz, NULL, 100 },
};

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "until_gone"))
		until_gone();
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}

// SPDX-License-Identifier: GPL-2.0
/*
 * smc.c - sockets of AF_SMC between two addresses of this kernel
 *
 *	smc eid NAME		an id that both ends have: SMC-R version 2 needs one
 *	smc run ADDRESS CONNECTIONS BYTES
 *
 * run: that many connections at once to a server of its own at ADDRESS; each sends
 * BYTES in both directions, in pieces of odd sizes, and both ends compare.  None of
 * them may be one of TCP: the kernel says so through SMC_DIAG.
 */
#include <arpa/inet.h>
#include <err.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/smc.h>
#include <linux/smc_diag.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef AF_SMC
#define AF_SMC 43
#endif

#define PATIENCE_MS 60000

/* --- netlink ---------------------------------------------------------------- */

struct message {
	struct nlmsghdr head;
	union {
		struct genlmsghdr genl;
		struct smc_diag_req diag;
	};
	char attrs[256];
};

static void add_string(struct message *m, uint16_t type, const char *s)
{
	struct nlattr *attr = (void *)((char *)m + NLMSG_ALIGN(m->head.nlmsg_len));

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + strlen(s) + 1;
	strcpy((char *)(attr + 1), s);
	m->head.nlmsg_len = NLMSG_ALIGN(m->head.nlmsg_len) + NLA_ALIGN(attr->nla_len);
}

/* Sends @m; returns the bytes of the first answer. */
static ssize_t ask(int fd, const struct message *m, void *answer, size_t len)
{
	ssize_t n;

	if (send(fd, m, m->head.nlmsg_len, 0) < 0)
		err(1, "netlink send");
	n = recv(fd, answer, len, 0);
	if (n < 0)
		err(1, "netlink receive");
	return n;
}

static uint16_t family_id(int fd, const char *name)
{
	struct message m = {
		.head = {
			.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
			.nlmsg_type = GENL_ID_CTRL,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.genl = { .cmd = CTRL_CMD_GETFAMILY, .version = 1 },
	};
	union {
		struct nlmsghdr head;
		char bytes[8192];
	} a;
	char *p, *end;

	add_string(&m, CTRL_ATTR_FAMILY_NAME, name);
	end = a.bytes + ask(fd, &m, &a, sizeof(a));
	if (a.head.nlmsg_type == NLMSG_ERROR)
		errx(1, "no family %s", name);
	for (p = a.bytes + NLMSG_LENGTH(GENL_HDRLEN); p < end;) {
		struct nlattr *attr = (void *)p;

		if (attr->nla_type == CTRL_ATTR_FAMILY_ID)
			return *(uint16_t *)(attr + 1);
		p += NLA_ALIGN(attr->nla_len);
	}
	errx(1, "family %s has no id", name);
}

static int add_eid(const char *name)
{
	struct message m = {
		.head = {
			.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		},
		.genl = {
			.cmd = SMC_NETLINK_ADD_UEID,
			.version = SMC_GENL_FAMILY_VERSION,
		},
	};
	union {
		struct nlmsghdr head;
		char bytes[8192];
	} a;
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC), ret;
	char padded[SMC_MAX_EID_LEN + 1];

	m.head.nlmsg_type = family_id(fd, SMC_GENL_FAMILY_NAME);
	snprintf(padded, sizeof(padded), "%-*s", SMC_MAX_EID_LEN, name);
	add_string(&m, SMC_NLA_EID_TABLE_ENTRY, padded);
	ask(fd, &m, &a, sizeof(a));
	ret = ((struct nlmsgerr *)NLMSG_DATA(&a.head))->error;
	if (ret)
		errx(1, "EID %s: %s", name, strerror(-ret));
	return 0;
}

/* What the kernel says of the socket @fd: enum SMC_DIAG_MODE_*, or -1. */
static int mode_of(int fd)
{
	struct message m = {
		.head = {
			.nlmsg_len = NLMSG_LENGTH(sizeof(struct smc_diag_req)),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.diag = {
			.diag_family = AF_SMC,
			.diag_ext = 1 << (SMC_DIAG_FALLBACK - 1),
		},
	};
	int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG), mode = -1;
	static char a[65536];
	struct stat st;

	if (netlink < 0 || fstat(fd, &st))
		err(1, "diag");
	if (send(netlink, &m, m.head.nlmsg_len, 0) < 0)
		err(1, "diag send");
	for (;;) {
		ssize_t n = recv(netlink, a, sizeof(a), 0);
		struct nlmsghdr *h = (void *)a;

		if (n < 0)
			err(1, "diag receive");
		for (; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			struct smc_diag_msg *d = NLMSG_DATA(h);

			if (h->nlmsg_type == NLMSG_DONE) {
				close(netlink);
				return mode;
			}
			if (h->nlmsg_type == NLMSG_ERROR)
				errx(1, "diag: error");
			if (d->diag_inode == st.st_ino)
				mode = d->diag_mode;
		}
	}
}

/* --- traffic ---------------------------------------------------------------- */

static uint8_t byte_at(uint64_t offset, unsigned int seed)
{
	return (offset * 131 + (offset >> 8) * 7 + seed * 29) & 0xff;
}

/* Both directions at once: @fd sends the bytes of @out and expects those of @in. */
static void exchange(int fd, uint64_t bytes, unsigned int out, unsigned int in)
{
	uint64_t sent = 0, got = 0;
	static uint8_t buf[70001];

	while (sent < bytes || got < bytes) {
		struct pollfd p = {
			.fd = fd,
			.events = (sent < bytes ? POLLOUT : 0) |
				  (got < bytes ? POLLIN : 0),
		};
		ssize_t n;

		if (poll(&p, 1, PATIENCE_MS) != 1)
			errx(1, "nothing goes on: %lu sent, %lu received",
			     (unsigned long)sent, (unsigned long)got);
		if (p.revents & POLLIN) {
			n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
			if (n <= 0)
				err(1, "receive after %lu", (unsigned long)got);
			for (ssize_t i = 0; i < n; i++, got++)
				if (buf[i] != byte_at(got, in))
					errx(1, "byte %lu is wrong",
					     (unsigned long)got);
		}
		if (p.revents & POLLOUT) {
			size_t len = 1 + (sent * 7 + out) % sizeof(buf);

			if (len > bytes - sent)
				len = bytes - sent;
			for (size_t i = 0; i < len; i++)
				buf[i] = byte_at(sent + i, out);
			n = send(fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);
			if (n <= 0)
				err(1, "send after %lu", (unsigned long)sent);
			sent += n;
		}
		if (p.revents & (POLLERR | POLLNVAL))
			errx(1, "socket error");
	}
}

static void finish(int fd)
{
	int mode = mode_of(fd);
	char c;

	if (mode != SMC_DIAG_MODE_SMCR)
		errx(1, "mode %d, not SMC-R", mode);
	/* the other end's last bytes are read before either goes */
	if (shutdown(fd, SHUT_WR))
		err(1, "shutdown");
	if (recv(fd, &c, 1, 0) != 0)
		errx(1, "no end of the stream");
	close(fd);
}

static int run(const char *address, unsigned int connections, uint64_t bytes)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	int listener = socket(AF_SMC, SOCK_STREAM, 0), bad = 0, status;
	socklen_t len = sizeof(to);
	unsigned int i;

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
		errx(2, "%s is no address", address);
	if (listener < 0)
		err(1, "socket");
	if (bind(listener, (void *)&to, sizeof(to)) ||
	    listen(listener, connections) ||
	    getsockname(listener, (void *)&to, &len))
		err(1, "listen");
	for (i = 0; i < connections; i++) {
		if (!fork()) {
			int fd = accept(listener, NULL, NULL);

			alarm(2 * PATIENCE_MS / 1000);
			if (fd < 0)
				err(1, "accept");
			exchange(fd, bytes, 1, 2);
			finish(fd);
			_exit(0);
		}
		if (!fork()) {
			int fd = socket(AF_SMC, SOCK_STREAM, 0);

			close(listener);
			alarm(2 * PATIENCE_MS / 1000);
			if (fd < 0 || connect(fd, (void *)&to, sizeof(to)))
				err(1, "connect");
			exchange(fd, bytes, 2, 1);
			finish(fd);
			_exit(0);
		}
	}
	for (i = 0; i < 2 * connections; i++)
		if (wait(&status) < 0 || status)
			bad = 1;
	return bad;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "eid"))
		return add_eid(argv[2]);
	if (argc == 5 && !strcmp(argv[1], "run"))
		return run(argv[2], atoi(argv[3]), atoll(argv[4]));
	errx(2, "smc eid NAME | smc run ADDRESS CONNECTIONS BYTES");
}

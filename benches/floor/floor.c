/* floor: a relay that parses nothing, the least that any proxy can cost.
 *
 *   floor 127.0.0.1:8080 127.0.0.1:8000 2
 *
 * Each worker process has a listening socket and an epoll set of its own. A client's connection gets
 * one connection to the upstream, and whatever comes from either side is sent to the other: four
 * system calls a request, besides waiting. No splice, which costs more for small messages.
 *
 * It is a yardstick: what does not fit into a socket's send buffer waits in a buffer, and the other
 * side is not read until it is gone; there is no time limit on anything.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

enum { BUFFER = 64 << 10, EVENTS = 256, WORKERS = 64 };

/* side is one end of a relayed connection. */
struct side {
	int fd;
	int last;           /* the end of the stream is behind what can be read: no event will tell */
	int ended;          /* the peer sends no more, and the other side was told */
	struct side *other;
	char *held;         /* what could not be sent to this side yet; NULL: nothing */
	size_t from, to;    /* what of it is still to be sent */
	struct side *next;  /* in the list of sides that are freed after this turn */
	int dead;
};

static int set;              /* the epoll set */
static struct side *graves;
static char shared[BUFFER];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static struct sockaddr_in address(const char *text)
{
	char host[64];
	const char *colon = strrchr(text, ':');
	struct sockaddr_in a = { .sin_family = AF_INET };
	if (!colon || (size_t)(colon - text) >= sizeof host)
		fail(text);
	memcpy(host, text, colon - text);
	host[colon - text] = 0;
	a.sin_port = htons(atoi(colon + 1));
	if (inet_pton(AF_INET, host, &a.sin_addr) != 1)
		fail(text);
	return a;
}

static void bury(struct side *s)
{
	for (int i = 0; i < 2; i++, s = s->other) {
		if (s->dead)
			continue;
		s->dead = 1;
		close(s->fd);
		free(s->held);
		s->next = graves;
		graves = s;
	}
}

/* deliver sends to s what is held for it: 1 if all is gone, 0 if not, -1 on an error. */
static int deliver(struct side *s)
{
	while (s->held && s->from < s->to) {
		ssize_t n = send(s->fd, s->held + s->from, s->to - s->from, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == ENOTCONN ? 0 : -1;
		s->from += n;
	}
	free(s->held);
	s->held = NULL;
	return 1;
}

/* forward moves what s has sent to the other side until there is no more: -1 on an error. */
static int forward(struct side *s)
{
	struct side *o = s->other;
	while (!o->held && !s->ended) {
		ssize_t n = recv(s->fd, shared, sizeof shared, 0);
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		if (n == 0) {
			s->ended = 1;
			shutdown(o->fd, SHUT_WR);
			return o->ended ? -1 : 0;
		}
		ssize_t sent = send(o->fd, shared, n, MSG_NOSIGNAL);
		if (sent < 0 && errno != EAGAIN && errno != ENOTCONN)
			return -1;
		if (sent < n) {
			sent = sent < 0 ? 0 : sent;
			o->held = malloc(BUFFER);
			if (!o->held)
				return -1;
			memcpy(o->held, shared + sent, n - sent);
			o->from = 0, o->to = n - sent;
			return 0;
		}
		if (n < (ssize_t)sizeof shared && !s->last)
			return 0; /* drained: the next byte is a new edge */
	}
	return 0;
}

/* happened acts on what epoll says about s: -1 if its connections are finished. */
static int happened(struct side *s, unsigned is)
{
	int waited = s->held != NULL, gone;
	if (is & EPOLLERR)
		return -1;
	if (is & (EPOLLRDHUP | EPOLLHUP))
		s->last = 1;
	gone = deliver(s);
	if (gone < 0 || (waited && gone && forward(s->other) < 0))
		return -1;
	return is & (EPOLLIN | EPOLLRDHUP | EPOLLHUP) ? forward(s) : 0;
}

static struct side *watch(int fd)
{
	struct side *s = calloc(1, sizeof *s);
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = s };
	int on = 1;
	if (!s)
		fail("memory");
	s->fd = fd;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) < 0)
		fail("epoll_ctl");
	return s;
}

static void take(int listener, const struct sockaddr_in *upstream)
{
	for (;;) {
		int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (client < 0)
			return;
		int up = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (up < 0 || (connect(up, (const struct sockaddr *)upstream, sizeof *upstream) < 0 && errno != EINPROGRESS)) {
			close(client);
			if (up >= 0)
				close(up);
			continue;
		}
		struct side *a = watch(client), *b = watch(up);
		a->other = b, b->other = a;
	}
}

static void serve(struct sockaddr_in at, struct sockaddr_in upstream)
{
	struct epoll_event events[EVENTS], accepting = { .events = EPOLLIN };
	int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
	if (bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(listener, 4096) < 0)
		fail("listen");
	set = epoll_create1(EPOLL_CLOEXEC);
	if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, listener, &accepting) < 0)
		fail("epoll");
	for (;;) {
		int n = epoll_wait(set, events, EVENTS, -1);
		for (int i = 0; i < n; i++) {
			struct side *s = events[i].data.ptr;
			if (!s) {
				take(listener, &upstream);
				continue;
			}
			if (!s->dead && happened(s, events[i].events) < 0)
				bury(s);
		}
		while (graves) {
			struct side *s = graves;
			graves = s->next;
			free(s);
		}
	}
}

int main(int argc, char **argv)
{
	int workers = argc == 4 ? atoi(argv[3]) : 0;
	if (workers < 1 || workers > WORKERS) {
		fprintf(stderr, "usage: floor LISTEN UPSTREAM WORKERS (addresses as 127.0.0.1:8080, at most %d workers)\n", WORKERS);
		return 2;
	}
	for (int i = 0; i < workers; i++) {
		pid_t child = fork();
		if (child < 0)
			fail("fork");
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			serve(address(argv[1]), address(argv[2]));
		}
	}
	wait(NULL); /* a worker ends only if something is wrong */
	return 1;
}

